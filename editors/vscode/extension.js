// Starts the language server for .coh files.

const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("cohort").get("server");
  const options = { documentSelector: [{ language: "cohort" }] };
  client = new LanguageClient("cohort", "Cohort", { command }, options);
  return client.start();
};

exports.deactivate = () => client?.stop();
