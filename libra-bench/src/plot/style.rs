//! How plots look.
//!
//! The hues are those of Okabe and Ito (Color Universal Design, 2008), which people with any colour vision tell apart;
//! their lightness is changed so that each stands out from the paper by 4.5:1, in light and in dark. Variables of CSS
//! would be shorter; viewers of SVG other than browsers do not know them.

/// Number of colours of series.
pub(crate) const COLOURS: usize = 7;

/// Style sheet of plots, alone and within a page.
pub(crate) const CSS: &str = "
.plot{color:#1b1b1f;font:13px system-ui,sans-serif}
.plot text{fill:currentColor}
.plot .plot-title{font-weight:600;font-size:16px}
.plot .plot-name{font-weight:600}
.plot .plot-paper{fill:#fff}
.plot .plot-grid{stroke:currentColor;stroke-opacity:.16;fill:none}
.plot .plot-frame{stroke:currentColor;stroke-opacity:.5;fill:none}
.plot .plot-line{fill:none;stroke-width:2;stroke-linejoin:round}
.plot .plot-dashed{stroke-dasharray:6 4}
.plot .plot-open{fill:#fff;stroke-width:2}
.plot .plot-faint{fill-opacity:.35}
.plot .plot-small{font-size:11px}
.plot .plot-s0{stroke:#0060a8}.plot .plot-f0{fill:#0060a8}
.plot .plot-s1{stroke:#b84300}.plot .plot-f1{fill:#b84300}
.plot .plot-s2{stroke:#00785a}.plot .plot-f2{fill:#00785a}
.plot .plot-s3{stroke:#98378a}.plot .plot-f3{fill:#98378a}
.plot .plot-s4{stroke:#7a5c00}.plot .plot-f4{fill:#7a5c00}
.plot .plot-s5{stroke:#1b1b1f}.plot .plot-f5{fill:#1b1b1f}
.plot .plot-s6{stroke:#66666c}.plot .plot-f6{fill:#66666c}
@media (prefers-color-scheme:dark){
.plot{color:#e8e8ec}
.plot .plot-paper,.plot .plot-open{fill:#16171b}
.plot .plot-s0{stroke:#62b4f4}.plot .plot-f0{fill:#62b4f4}
.plot .plot-s1{stroke:#ff9a5c}.plot .plot-f1{fill:#ff9a5c}
.plot .plot-s2{stroke:#3fd0a2}.plot .plot-f2{fill:#3fd0a2}
.plot .plot-s3{stroke:#e794d6}.plot .plot-f3{fill:#e794d6}
.plot .plot-s4{stroke:#e6c23c}.plot .plot-f4{fill:#e6c23c}
.plot .plot-s5{stroke:#e8e8ec}.plot .plot-f5{fill:#e8e8ec}
.plot .plot-s6{stroke:#a8a8b0}.plot .plot-f6{fill:#a8a8b0}
}
";
