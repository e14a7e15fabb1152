// Short explanations of the terms on the page.

import { h, put } from "./dom.js";
import { TERMS } from "./terms.js";

const box = h("div", { id: "help", popover: "auto", role: "status" });

/** Return a button that explains a term, or null if the term needs no explanation. */
export function help(term) {
  const sentence = TERMS[term];
  if (!sentence) return null;
  const button = h("button", { type: "button", class: "help", "aria-label": `What is “${term}”?`, onclick: () => explain(button, term, sentence) });
  return button;
}

function explain(button, term, sentence) {
  if (!box.isConnected) document.body.append(box);
  box.showPopover();
  put(box, h("b", null, term), h("p", null, sentence));
  const place = button.getBoundingClientRect();
  const { offsetWidth, offsetHeight } = box;
  const isLow = place.bottom + offsetHeight + 12 > innerHeight;
  box.style.left = `${Math.max(8, Math.min(place.left, innerWidth - offsetWidth - 24))}px`;
  box.style.top = `${isLow ? Math.max(8, place.top - offsetHeight - 6) : place.bottom + 6}px`;
}

/** Return those of some terms that have an explanation, with it. */
export const explained = (terms) => terms.filter((term) => TERMS[term]).map((term) => [term, TERMS[term]]);
