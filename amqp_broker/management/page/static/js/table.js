// Tables whose cells change in place. A row is identified by its key; unchanged cells are not touched.

import { marked, h, put, text, unseen } from "./dom.js";
import { Fitting } from "./fitting.js";
import { BLANK } from "./format.js";
import { split } from "./names.js";
import { SHORT_MAX, VirtualRows } from "./virtual_rows.js";

/** A cell with elements, rebuilt only when `shown` changes. */
export const cell = (shown, build) => ({ shown: typeof shown === "string" ? shown : JSON.stringify(shown), build });
// A name that may need several lines has a column with room for some letters.
const LINE = 14;
export const link = (label, href) => cell(`${label}\n${href}`, () => h("a", { href, class: String(label).length > LINE ? "name long-name" : "name", title: whole(label) }, nameOf(label)));

/** Return the parts of a name; the middle of a very long one is hidden. */
function nameOf(label) {
  const [start, middle, end] = split(label);
  return middle ? [start, h("span", { hidden: true }, middle), h("span", { class: "left-out" }), end] : start;
}

// A long text is cut: the whole shows when the pointer is above it.
const LONG = 30;
const whole = (label) => (String(label).length > LONG ? String(label) : null);
export const tag = (label, kind = "") => h("span", { class: `tag ${kind}` }, label);
export const tags = (...labels) => {
  const given = labels.filter(Boolean);
  if (!given.length) return BLANK;
  return cell(given, () => given.map(([label, title, kind]) => h("span", { class: `tag ${kind ?? ""}`, title: title || whole(label) }, label)));
};

// columns: [{ title, value(row) → text or cell, numeric, sort (a field of the API), help, wide, minor, isKept, isHead }].
// Long texts of a wide column are broken, those of others are cut. Where there is no room, minor columns are left out
// first, and those that are kept last. The head is the column that names a row. The key of a row is a text; empty is the
// element to show if there are no rows.
export class Table {
  constructor({ columns, key, onSort, empty, label }) {
    this.columns = columns;
    this.key = key;
    this.rows = new Map();
    this.items = [];
    this.first = 0;
    this.isLong = false;
    this.heads = columns.map((column) => {
      const content =
        onSort && column.sort ? h("button", { type: "button", class: "sort", onclick: () => onSort(column) }, column.title) : column.title || unseen("Action");
      return h("th", { scope: "col", class: kinds(column), title: column.help }, content);
    });
    this.body = h("tbody", { onkeydown: (event) => this.onKey(event) });
    this.table = h("table", { "aria-label": label }, h("thead", null, h("tr", { "aria-rowindex": 1 }, this.heads)), this.body);
    this.empty = h("div", { class: "empty", hidden: true }, empty ?? "Empty.");
    this.element = h("div", { class: "table", role: "group", "aria-label": label }, this.table, this.empty);
    this.virtual = new VirtualRows(this.body, () => this.settle());
    this.fitting = new Fitting(this.element, this.table, columns, () => this.virtual.reset());
  }

  /** Leave out the columns that the user does not want to see. */
  hide(titles) {
    this.fitting.hidden = this.columns.flatMap((column, index) => (titles.has(column.title) ? [index] : []));
    this.fitting.fit();
  }

  /** Return the titles of columns that have no room. */
  withoutRoom() {
    return this.fitting.withoutRoom().map((index) => this.columns[index].title).filter(Boolean);
  }

  /** Mark the column that the rows are sorted by. */
  sorted(field, isReversed) {
    this.columns.forEach((column, index) => {
      const by = column.sort && column.sort === field;
      if (by) this.heads[index].setAttribute("aria-sort", isReversed ? "descending" : "ascending");
      else this.heads[index].removeAttribute("aria-sort");
    });
  }

  /** Show rows; `items` may lack some that are not known yet. They are those from `first` on, of `total` rows. */
  update(items, first = 0, total = first + items.length) {
    const isLong = items.length > SHORT_MAX;
    if (isLong && !this.isLong) this.virtual.follow();
    if (!isLong && this.isLong) this.virtual.leave();
    const isOther = items.length !== this.count;
    this.items = items;
    this.count = items.length;
    this.first = first;
    this.isLong = this.fitting.isLong = isLong;
    this.table.classList.toggle("long", isLong);
    this.table.setAttribute("aria-rowcount", total + 1);
    this.empty.hidden = items.length > 0;
    this.table.hidden = items.length === 0;
    const keys = this.draw();
    if (keys === this.keys || (isLong && !isOther && !this.isCut())) this.fitting.squeeze();
    else this.fitting.fit();
    this.keys = isLong && this.virtual.measure() ? this.draw() : keys;
  }

  /** Show the rows that have come near the screen, and make all rows as high as the highest. */
  settle() {
    this.draw();
    if (this.isLong && this.virtual.measure()) this.draw();
  }

  /** Show the rows near the screen, and keep the one with the focus. Return their keys. */
  draw() {
    const { items } = this;
    const [first, last] = this.virtual.range(items.length);
    const focused = this.focusedPlace();
    const places = Array.from({ length: last - first }, (_, index) => first + index);
    if (focused !== null && focused < first) places.unshift(focused);
    if (focused !== null && focused >= last) places.push(focused);
    const wanted = [];
    const seen = new Set();
    let gaps = 0;
    let next = 0;
    const leap = (place) => {
      if (place > next) wanted.push(this.virtual.gap(gaps++, place - next));
      next = place + 1;
    };
    for (const place of places) {
      const key = place in items ? this.key(items[place]) : null;
      if (key === null || seen.has(key)) continue;
      seen.add(key);
      leap(place);
      wanted.push(this.row(key, place));
    }
    leap(items.length);
    this.arrange(wanted, seen);
    this.onRange?.(first, last);
    return [...seen].join("\n");
  }

  /** Return the row of an item, with its present values. */
  row(key, place) {
    let row = this.rows.get(key);
    if (!row) this.rows.set(key, (row = this.add()));
    row.place = place;
    row.setAttribute("aria-rowindex", this.first + place + 2);
    this.columns.forEach((column, index) => change(row.cells[index], column.value(this.items[place]), column.title ? BLANK : ""));
    return row;
  }

  /** Make these the rows of the body. A row that stays is not moved, or it would lose the focus. */
  arrange(wanted, seen) {
    for (const [key, row] of this.rows) if (!seen.has(key)) this.rows.delete(key);
    const kept = new Set(wanted);
    for (const row of [...this.body.children]) if (!kept.has(row)) row.remove();
    let before = null;
    for (const row of wanted) {
      const next = before ? before.nextSibling : this.body.firstChild;
      if (next !== row) this.body.insertBefore(row, next);
      before = row;
    }
  }

  /** Return the place of the row that has the focus, or null. */
  focusedPlace() {
    if (!this.isLong || !this.body.contains(document.activeElement)) return null;
    const row = document.activeElement.closest("tr");
    const [key] = [...this.rows].find(([, one]) => one === row) ?? [];
    const place = this.items.findIndex((item) => item !== undefined && this.key(item) === key);
    return place < 0 ? null : place;
  }

  /** Return whether a number has no room. */
  isCut() {
    return [...this.body.querySelectorAll("td.numeric")].some((one) => one.scrollWidth > one.clientWidth);
  }

  add() {
    return h("tr", null, this.columns.map((column) => h("td", { class: kinds(column), role: column.isHead ? "rowheader" : null })));
  }

  /** Up and down move the focus to the first link or button of the next row. */
  onKey(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const step = event.key === "ArrowDown" ? 1 : -1;
    for (let place = event.target.closest("tr").place + step; place in this.items; place += step) {
      const row = () => this.rows.get(this.key(this.items[place]));
      if (!row()) this.virtual.reveal(place);
      const target = row()?.querySelector("a, button");
      if (!target) continue;
      target.focus();
      event.preventDefault();
      return;
    }
  }
}

const kinds = (column) => [column.numeric && "numeric", column.wide && "wide", column.minor && "minor", column.isHead && "head"].filter(Boolean).join(" ") || null;

// Values that say that there is nothing.
const NOTHING = new Set([BLANK, "0", "0/s", "0 B/s"]);

/** Show a value in its place; one that is empty has the same form everywhere. */
function change(place, value, blank = BLANK) {
  if (value !== null && typeof value === "object") {
    if (place.shown === value.shown) return;
    place.shown = value.shown;
    place.classList.remove("nothing");
    put(place, value.build());
  } else {
    place.shown = null;
    const shown = value === null || value === undefined || value === "" ? blank : String(value);
    text(place, shown);
    place.classList.toggle("nothing", NOTHING.has(shown));
    if (whole(shown)) place.title = marked(shown);
    else place.removeAttribute("title");
  }
}

/** A list of names and values, changed in place. */
export class Facts {
  constructor() {
    this.element = h("dl", { class: "facts" });
    this.values = new Map();
  }

  update(facts) {
    const names = facts.map(([name]) => name).join("\n");
    if (this.names !== names) {
      this.names = names;
      this.values = new Map(facts.map(([name]) => [name, h("dd")]));
      put(this.element, [...this.values].map(([name, place]) => h("div", null, h("dt", null, name), place)));
    }
    for (const [name, value] of facts) change(this.values.get(name), value);
  }
}
