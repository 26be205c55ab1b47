use super::super::cluster::Cluster;
use super::super::model::{MODELS, Model};

#[test]
fn every_model_is_legal_and_has_the_parameters_of_its_shapes() {
    // Hidden size, width of all experts that a token is sent to, experts to choose from.
    let shapes = [
        ("qwen3-8b", 4096, 12288, 0),
        ("qwen3-30b-a3b", 2048, 8 * 768, 128),
        ("qwen3-235b-a22b", 4096, 8 * 1536, 128),
    ];
    assert_eq!(MODELS.map(|(name, _)| name), shapes.map(|(name, ..)| name));
    for (name, hidden, wide, experts) in shapes {
        let model = Model::read(name).expect(name);
        assert_eq!(model.name, name);
        let heads = u64::from(model.head_dim) * u64::from(2 * model.q_heads + 2 * model.kv_heads);
        let parameters = hidden * (heads + 3 * wide + experts);
        assert_eq!(model.active_parameters, parameters, "{name}");
    }
}

#[test]
fn the_clusters_own_model_is_the_dense_one() {
    let own = Cluster::read("h200").expect("built in").file;
    let model = Model::read("qwen3-8b").expect("built in");
    let section = model.section(&own.model, own.gpu.peak_tflops);
    assert_eq!(section.layers, own.model.layers);
    assert!((section.linear_us_per_token - own.model.linear_us_per_token).abs() < 0.005);
}

#[test]
fn a_token_costs_two_operations_a_parameter_at_the_share_of_the_peak_that_is_said() {
    let mut model = Model::read("qwen3-8b").expect("built in");
    (model.active_parameters, model.utilisation) = (50_000_000, 0.25);
    // 100 million operations at 250 million a microsecond.
    assert_eq!(model.linear_us_per_token(1000.0), 0.4);
}

#[test]
fn models_that_cannot_be_are_refused_with_what_is_legal() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("m.toml");
    let path = path.to_str().expect("text");
    let text = include_str!("../../../profiles/qwen3-8b.toml");
    let refused = |from: &str, to: &str| {
        std::fs::write(path, text.replacen(from, to, 1)).expect("written");
        let error = Model::read(path).expect_err("refused").to_string();
        error.replace(path, "m.toml")
    };
    let message = refused("layers = 36", "layers = 0");
    assert_eq!(message, "m.toml: layers is 0; legal is 1 to 10000");
    let message = refused("0.5", "1.5");
    assert_eq!(message, "m.toml: utilisation is 1.5; legal is 0.001 to 1");
    assert!(refused("layers = 36\n", "").contains("missing field `layers`"));
    assert_eq!(
        Model::read("qwen4").expect_err("nowhere").to_string(),
        "qwen4: neither a file nor a built-in model; legal are qwen3-8b, qwen3-30b-a3b, qwen3-235b-a22b"
    );
}

#[test]
fn the_books_model_file_is_the_built_in_one() {
    let page = include_str!("../../../../docs/src/simulate.md");
    let text = (page.split("```toml\n"))
        .find(|block| block.starts_with("name = \"qwen3-30b-a3b\""))
        .and_then(|block| block.split("```").next())
        .expect("a block");
    let book: Model = toml::from_str(text).expect("legal");
    assert_eq!(book, Model::read("qwen3-30b-a3b").expect("built in"));
}
