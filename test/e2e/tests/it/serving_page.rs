//! The page of `batch-serve`, in a browser.

use cohort_e2e::browser::{Browser, installed};
use cohort_e2e::paths::goldens;

use crate::serving::Server;

#[test]
fn the_page_shows_what_the_server_does_and_runs_an_instance() {
    let Some(program) = installed() else {
        eprintln!("no Chromium here, so the page is not tested; `make setup` installs it");
        return;
    };
    let golden = &goldens("treelstm")[1];
    let server = Server::of_golden(golden, &[]);
    let mut browser = Browser::open(&program, &format!("http://{}/", server.address));
    browser.wait_for("document.title == 'treelstm'");
    browser.wait_for("document.getElementById('instance').value.includes('Leaf')");
    browser.wait_for("document.getElementById('signature').textContent.includes('f32[5]')");
    assert_eq!(
        browser.value("document.getElementById('done').textContent"),
        "0"
    );
    browser.value("document.getElementById('run').click()");
    browser.wait_for("!document.getElementById('result').hidden");
    browser.wait_for("document.getElementById('took').textContent.startsWith('200')");
    let shown = browser.value("document.getElementById('result').textContent");
    let example = browser.value("document.getElementById('instance').value");
    let direct = server
        .client()
        .post("/infer", example.as_str().unwrap())
        .unwrap();
    assert_eq!(shown.as_str().unwrap(), direct.text());
    // Both of them, a second later.
    browser.wait_for("document.getElementById('done').textContent == '2'");
    browser.wait_for("document.getElementById('p50').textContent.endsWith('s')");
    // A wrong one shows why.
    browser.value("document.getElementById('instance').value = '{\"t\": 3}'");
    browser.value("document.getElementById('run').click()");
    browser.wait_for("document.getElementById('took').textContent.startsWith('400')");
    browser.wait_for("document.getElementById('result').textContent.includes('expected a Tree')");
    browser.wait_for("document.getElementById('errors').textContent == '1'");
}
