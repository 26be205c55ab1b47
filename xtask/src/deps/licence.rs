//! Licence expressions, as far as manifests use them.

const ALLOWED: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
    "MPL-2.0",
    "BSL-1.0",
    "Unlicense",
    "CC0-1.0",
];

/// Whether the expression can be met with allowed licences alone: `OR` needs one side, `AND` both.
pub(super) fn is_allowed(expression: &str) -> bool {
    // Old manifests write `MIT/Apache-2.0`.
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words = Words {
        words: spaced.split_whitespace().collect(),
        next: 0,
    };
    words.any() == Some(true) && words.peek().is_none()
}

/// A parser; each method returns `None` where the expression is malformed.
struct Words<'a> {
    words: Vec<&'a str>,
    next: usize,
}

impl Words<'_> {
    fn any(&mut self) -> Option<bool> {
        let mut allowed = self.all()?;
        while self.take("OR") {
            allowed |= self.all()?;
        }
        Some(allowed)
    }

    fn all(&mut self) -> Option<bool> {
        let mut allowed = self.one()?;
        while self.take("AND") {
            allowed &= self.one()?;
        }
        Some(allowed)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let allowed = self.any()?;
            return self.take(")").then_some(allowed);
        }
        let name = self.peek()?;
        self.next += 1;
        if !self.take("WITH") {
            return Some(ALLOWED.contains(&name.as_str()));
        }
        let exception = self.peek()?;
        self.next += 1;
        Some(ALLOWED.contains(&format!("{name} WITH {exception}").as_str()))
    }

    fn peek(&self) -> Option<String> {
        self.words.get(self.next).map(|word| (*word).to_owned())
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.next) == Some(&word);
        self.next += usize::from(is_next);
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn or_needs_one_side_and_and_needs_both() {
        for good in [
            "MIT",
            "MIT/GPL-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT OR",
            "(MIT",
            "MIT GPL-3.0",
            "MIT WITH LLVM-exception",
            "",
        ] {
            assert!(!is_allowed(bad), "{bad}");
        }
    }
}
