"""Attacks on a page that shows texts, and a watch in the browser that notices when one succeeds."""

from __future__ import annotations

import re
from typing import Final

from tests.page.browser import Browser

# Elements of an attack have the attribute `data-attack`; scripts of an attack set `window.hit`; addresses of an attack
# contain `attack`. No text has a line break or more than 255 octets, so that all can be names.
ATTACKS: Final = (
    # Elements, also behind what would close the element that shows the text.
    "<img data-attack src=/attack onerror=window.hit=1>",
    "<script data-attack>window.hit=1</script>",
    "</script><script data-attack>window.hit=1</script>",
    "</title></style></textarea></select></noscript><svg data-attack onload=window.hit=1>",
    "-->]]><iframe data-attack srcdoc='<script>parent.hit=1</script>'></iframe>",
    "<math><mtext><table><mglyph><style><!--</style><img data-attack src=/attack onerror=window.hit=1>",
    "<base data-attack href=//attack.test/><link data-attack rel=stylesheet href=/attack.css>",
    "<meta data-attack http-equiv=refresh content='0;url=javascript:window.hit=1'>",
    # Attributes, of elements whose attributes have quotes of both kinds or none.
    '" autofocus onfocus=window.hit=1 data-attack x="',
    "' autofocus onfocus=window.hit=1 data-attack x='",
    "x autofocus onfocus=window.hit=1 data-attack",
    "\"'><a data-attack href=javascript:window.hit=1>a</a>",
    # Addresses, styles, strings and templates of scripts.
    "javascript:window.hit=1//",
    " \x01java\tscript:window.hit=1//",
    "data:text/html,<script data-attack>parent.hit=1</script>",
    "//attack.test/attack.js",
    "red;background:url(/attack.png)}*{background:url(/attack.png)",
    "';window.hit=1;//\";window.hit=1;//`;window.hit=1;//",
    "{{constructor.constructor('window.hit=1')()}}${window.hit=1}<%= window.hit=1 %>",
    "__proto__",
    # Encoded markup, which must not be decoded twice.
    "&lt;img data-attack src=/attack onerror=window.hit=1&gt;",
    "%3Cimg data-attack src=/attack onerror=window.hit=1%3E%252F",
    "\\u003cimg data-attack src=/attack onerror=window.hit=1\\u003e",
    # Characters that turn the direction of a text around, or are not seen.
    "\u202e\u2066<img data-attack src=/attack onerror=window.hit=1>\u2069\u202c",
    "\u05d0\u05d1 \u05d2 1 \u061c\u200e\u200f\u202a\u202b\u202d\u2067\u2068<img data-attack src=/attack onerror=hit=1>",
    "<\u200bimg data-attack\ufeff src=/attack\u2028onerror=window.hit=1>\u200d",
)
# One text for places that show only one: it leaves every context of HTML.
ANY_CONTEXT: Final = (
    "javascript:/*--></title></style></textarea></script></select><svg data-attack onload=window.hit=1>"
    "'\"`+/*/[*/[]/+window.hit=1//'> x=\" autofocus onfocus=window.hit=1 data-attack"
)

# Runs in each document before its own scripts. A finding is a sentence.
WATCH: Final = """
(() => {
  const found = window.attackFindings = [];
  const tell = (what) => found.includes(what) || found.push(what);
  for (const name of ["alert", "confirm", "prompt", "open"]) window[name] = () => tell(`${name} was called`);
  addEventListener("securitypolicyviolation", (event) => tell(`the policy blocked ${event.violatedDirective}`));
  const leads = /^(href|xlink:href|src|srcdoc|action|formaction|data)$/;
  const look = (one) => {
    for (const { name, value } of one.attributes ?? []) {
      if (name === "data-attack") tell(`an element ${one.localName} of an attack`);
      if (name.startsWith("on")) tell(`a handler ${name} of ${one.localName}`);
      if (leads.test(name) && !/^(#|blob:|[/](?!attack|[/]))/.test(value)) tell(`${name} leads to ${value}`);
    }
  };
  const lookAt = (one) => (look(one), one.querySelectorAll?.("*").forEach(look));
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes)
      if (type === "attributes") look(target);
      else addedNodes.forEach(lookAt);
  }).observe(document, { subtree: true, childList: true, attributes: true });
  // The page's own requests have names of objects in their addresses.
  new PerformanceObserver((list) => {
    for (const { initiatorType, name } of list.getEntries())
      if (initiatorType !== "fetch" && name.includes("attack")) tell(`${initiatorType} requested ${name}`);
  }).observe({ type: "resource", buffered: true });
  // Parts between characters that isolate them turn nothing around.
  const outside = (value) => value.replace(/\\u2068[^\\p{Bidi_Control}]*\\u2069/gu, "");
  const turns = (value) => /\\p{Bidi_Control}/u.test(outside(value));
  const isFree = (value) => /[\\u0590-\\u08ff]/.test(outside(value));
  const lookAtDirections = () => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { data, parentNode } = walker.currentNode;
      if (turns(data)) tell(`a text of ${parentNode.localName} turns the direction`);
      const isIsolated = getComputedStyle(parentNode).unicodeBidi === "isolate" && parentNode.matches("bdi, tspan");
      if (isFree(data) && !isIsolated) tell(`a text of ${parentNode.localName} is not isolated`);
    }
    for (const one of document.querySelectorAll("[title], [aria-label]")) {
      const titles = one.getAttribute("title") + one.ariaLabel;
      if (turns(titles)) tell(`a title of ${one.localName} turns the direction`);
      if (isFree(titles)) tell(`a title of ${one.localName} is not isolated`);
    }
    if (turns(document.title) || isFree(document.title)) tell("the title turns the direction");
  };
  window.findAttacks = () => {
    lookAt(document.documentElement);
    // What the browser shows of an answer of the API is not ours.
    if (document.contentType === "text/html") lookAtDirections();
    if (window.hit !== undefined || Object.prototype.hit !== undefined) tell("a script ran");
    return found;
  };
})();
"""


def shown(text: str) -> str:
    """Return a text as the page shows it: with escapes for characters that change its direction."""
    return re.sub("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", lambda found: f"\\u{ord(found[0]):04x}", text)


def findings(browser: Browser) -> list[str]:
    """Return what the watch has noticed in the document since it was loaded."""
    found: list[str] = browser.script("return window.findAttacks()")
    return found
