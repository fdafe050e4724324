"use strict";
(() => {
  const box = document.getElementById("search");
  const found = document.getElementById("found");
  const chapters = document.getElementById("chapters");
  const MOST = 40;
  const BEFORE = 30;
  const EXCERPT = 110;

  // One entry for each heading, with the text up to the next one.
  const sections = [];
  for (const article of document.querySelectorAll("article")) {
    const title = article.querySelector("h1").textContent;
    let section = { id: article.id, title, heading: title, text: "" };
    sections.push(section);
    for (const element of article.children) {
      if (element.tagName === "H2" || element.tagName === "H3") {
        section = { id: element.id, title, heading: element.textContent, text: "" };
        sections.push(section);
      } else if (element.tagName !== "H1") {
        section.text += element.textContent.replace(/\s+/g, " ") + " ";
      }
    }
  }

  const marked = (text, words) => {
    const shown = document.createElement("small");
    const plain = text.toLowerCase();
    let at = 0;
    while (at < text.length) {
      let next = text.length;
      let length = 0;
      for (const word of words) {
        const place = plain.indexOf(word, at);
        if (place >= 0 && place < next) [next, length] = [place, word.length];
      }
      shown.append(text.slice(at, next));
      if (!length) break;
      const mark = document.createElement("mark");
      mark.textContent = text.slice(next, next + length);
      shown.append(mark);
      at = next + length;
    }
    return shown;
  };

  const excerpt = (section, words) => {
    const plain = section.text.toLowerCase();
    const places = words.map((word) => plain.indexOf(word)).filter((place) => place >= 0);
    const begin = Math.max(Math.min(...places, plain.length) - BEFORE, 0);
    return (begin ? "…" : "") + section.text.slice(places.length ? begin : 0, (places.length ? begin : 0) + EXCERPT);
  };

  const search = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    found.replaceChildren();
    found.hidden = !words.length;
    chapters.hidden = words.length > 0;
    if (!words.length) return;
    const hits = [];
    for (const section of sections) {
      const heading = (section.title + " " + section.heading).toLowerCase();
      const whole = heading + " " + section.text.toLowerCase();
      if (words.every((word) => whole.includes(word))) {
        hits.push([words.filter((word) => heading.includes(word)).length, section]);
      }
    }
    hits.sort((one, two) => two[0] - one[0]);
    for (const [, section] of hits.slice(0, MOST)) {
      const link = document.createElement("a");
      link.href = "#" + section.id;
      const inside = section.heading === section.title ? section.title : section.title + ": " + section.heading;
      link.append(inside, marked(excerpt(section, words), words));
      found.append(link);
    }
    const count = document.createElement("p");
    const rest = hits.length - MOST;
    count.textContent = rest > 0 ? "and " + rest + " more" : hits.length ? "" : "nothing found";
    found.append(count);
  };

  box.hidden = false;
  box.addEventListener("input", search);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== box) {
      event.preventDefault();
      box.focus();
    } else if (event.key === "Escape") {
      box.value = "";
      search();
    }
  });
})();
