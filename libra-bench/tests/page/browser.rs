//! Chromium without a window, driven over its debugging pipe (Chrome DevTools Protocol).
//!
//! Commands and events are JSON texts that end in a zero byte. The browser reads them from file descriptor 3 and writes
//! to 4; a shell makes those of the pipes that std can give to a child.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(120);
const FLAGS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
];

pub(crate) struct Browser {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    events: Vec<Value>,
    session: Option<String>,
    next: u64,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser with one empty page.
    pub(crate) fn start() -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        let mut child = Command::new("sh")
            .args([
                "-c",
                "exec chromium \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null",
                "sh",
            ])
            .args(FLAGS)
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let commands = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for text in answers.split(0) {
                let Ok(text) = text else { break };
                let message = serde_json::from_slice(&text).expect("the browser sends JSON");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let mut browser = Self {
            child,
            commands,
            messages,
            events: Vec::new(),
            session: None,
            next: 0,
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Opens a file and waits until it is loaded.
    pub(crate) fn open(&mut self, page: &Path) {
        let url = format!(
            "file://{}",
            page.canonicalize().expect("it is there").display()
        );
        self.call("Page.navigate", json!({ "url": url }));
        while !self
            .events
            .iter()
            .any(|event| event["method"] == "Page.loadEventFired")
        {
            let message = self.receive();
            self.events.push(message);
        }
        // Whatever the page does when it is loaded.
        self.evaluate("new Promise(done => setTimeout(done, 200))");
    }

    /// Does what `method` says and returns its result.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut command = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        let mut bytes = command.to_string().into_bytes();
        bytes.push(0);
        self.commands
            .write_all(&bytes)
            .expect("the browser is there");
        loop {
            let message = self.receive();
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// The value of a script.
    pub(crate) fn evaluate(&mut self, script: &str) -> Value {
        let parameters =
            json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(
            answer.get("exceptionDetails").is_none(),
            "{script}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Width and height of the window.
    pub(crate) fn size(&mut self, width: u32, height: u32) {
        let parameters =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", parameters);
    }

    /// `light`, `dark`, or on paper.
    pub(crate) fn scheme(&mut self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [feature] }),
        );
    }

    /// Presses and releases Tab.
    pub(crate) fn tab(&mut self) {
        for kind in ["rawKeyDown", "keyUp"] {
            let key =
                json!({ "type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
            self.call("Input.dispatchKeyEvent", key);
        }
    }

    /// What `method` told since the start.
    pub(crate) fn events(&self, method: &str) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|event| event["method"] == method)
            .collect()
    }

    fn receive(&self) -> Value {
        self.messages
            .recv_timeout(PATIENCE)
            .expect("the browser answers; is chromium installed?")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A picture of the page for a person.
pub(crate) fn picture(page: &Path, file: &Path, width: u32, height: u32) {
    let profile = tempfile::tempdir().expect("a folder");
    let done = Command::new("chromium")
        .args(FLAGS)
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--screenshot={}", file.display()))
        .arg(format!("--window-size={width},{height}"))
        .arg(format!(
            "file://{}",
            page.canonicalize().expect("it is there").display()
        ))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("chromium is installed");
    assert!(done.success());
}
