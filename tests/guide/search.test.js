"use strict";
// The page's script over a document of three sections, with as much of a browser as it needs.
const fs = require("fs");
const assert = require("assert");

class Element {
  constructor(tagName, id = "", text = "", children = []) {
    Object.assign(this, { tagName, id, children, hidden: false, value: "", listeners: {} });
    this.parts = [text];
  }
  get textContent() {
    return this.parts.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
  }
  set textContent(text) {
    this.parts = [text];
  }
  append(...parts) {
    this.parts.push(...parts);
  }
  replaceChildren() {
    this.parts = [];
  }
  addEventListener(name, listener) {
    this.listeners[name] = listener;
  }
  querySelector(tag) {
    return this.children.find((child) => child.tagName === tag.toUpperCase());
  }
  focus() {
    document.activeElement = this;
  }
}

const article = new Element("ARTICLE", "embed", "", [
  new Element("H1", "", "Embed"),
  new Element("P", "", "Open a node."),
  new Element("H2", "embed-fork", "At a fork"),
  new Element("P", "", "A child may use <nothing> of it."),
  new Element("H2", "embed-close", "At the end"),
  new Element("P", "", "Close the node; a fork is no end."),
]);
const byId = { search: new Element("INPUT"), found: new Element("DIV"), chapters: new Element("DIV") };
const keys = {};
global.document = {
  activeElement: null,
  getElementById: (id) => byId[id],
  querySelectorAll: () => [article],
  createElement: (tag) => new Element(tag.toUpperCase()),
  addEventListener: (name, listener) => (keys[name] = listener),
};
byId.search.hidden = true;
eval(fs.readFileSync(process.argv[2] + "/site.js", "utf8"));

const links = (typed) => {
  byId.search.value = typed;
  byId.search.listeners.input();
  return byId.found.parts.filter((part) => part.tagName === "A");
};
assert.equal(byId.search.hidden, false);
assert.deepEqual(links("FORK").map((link) => link.href), ["#embed-fork", "#embed-close"]);
assert.deepEqual(links("fork child").map((link) => link.href), ["#embed-fork"]);
assert.equal(links("nothing")[0].textContent, "Embed: At a forkA child may use <nothing> of it. ");
assert.deepEqual(links("zookeeper"), []);
assert.equal(byId.found.textContent, "nothing found");
assert.equal(byId.chapters.hidden, true);
let prevented = false;
keys.keydown({ key: "/", preventDefault: () => (prevented = true) });
assert.ok(prevented && document.activeElement === byId.search);
keys.keydown({ key: "Escape" });
assert.ok(byId.found.hidden && !byId.chapters.hidden);
console.log("found");
