//! The result, for people.

#[derive(Default)]
pub struct Table(Vec<[String; 4]>);

impl Table {
    pub fn row(&mut self, what: impl Into<String>, measured: impl Into<String>, goal: &str, yardstick: &str) {
        let row = [what.into(), measured.into(), goal.into(), yardstick.into()];
        eprintln!("{}: {}", row[0], row[1]);
        self.0.push(row);
    }

    /// As Markdown.
    pub fn print(&self) {
        println!("| what | measured | goal | kube-apiserver 1.36 + etcd 3.6 |\n|---|---|---|---|");
        for [what, measured, goal, yardstick] in &self.0 {
            println!("| {what} | {measured} | {goal} | {yardstick} |");
        }
    }
}

/// `samples` in any order.
pub fn percentile(samples: &mut [f64], of_hundred: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let last = samples.len().saturating_sub(1);
    samples.get((last as f64 * of_hundred / 100.0).round() as usize).copied().unwrap_or(f64::NAN)
}
