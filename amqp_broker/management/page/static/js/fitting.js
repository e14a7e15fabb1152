// Columns that a table has no room for are left out: the least important first, the one that names the row never.

// tables.css has a rule for each column up to this one.
const COLUMNS_MAX = 18;
const nameOf = (index) => `without-${index + 1}`;

/** Return the places of columns in the order in which they are left out. */
function order(columns) {
  const rank = (column) => (column.isHead ? 3 : column.isKept || !column.title ? 2 : column.minor ? 0 : 1);
  const places = columns.map((column, index) => ({ index, rank: rank(column) })).filter((one) => one.rank < 3 && one.index < COLUMNS_MAX);
  // A table always keeps a column.
  if (places.length === columns.length) places.shift();
  return places.sort((one, other) => one.rank - other.rank || other.index - one.index).map((one) => one.index);
}

/** Leaves out columns of a table as long as it is wider than its box, and those that the user has hidden. */
export class Fitting {
  constructor(box, table, columns, onFit) {
    this.box = box;
    this.table = table;
    this.onFit = onFit;
    this.order = order(columns);
    this.hidden = [];
    // A long table keeps the widths of its columns while other rows come into view.
    this.isLong = false;
    this.left = new Set();
    this.width = 0;
    new ResizeObserver(() => this.resize()).observe(box);
  }

  /** Return the places of the columns that have no room. */
  withoutRoom() {
    return [...this.left].filter((index) => !this.hidden.includes(index));
  }

  resize() {
    if (this.box.clientWidth === this.width) return;
    this.width = this.box.clientWidth;
    this.fit();
  }

  /** Show all columns that there is room for. */
  fit() {
    this.onFit();
    const heads = [...this.table.tHead.rows[0].cells];
    this.table.classList.remove("fixed", ...[...this.left].map(nameOf));
    for (const head of heads) head.style.width = "";
    this.left = new Set(this.hidden);
    this.table.classList.add(...[...this.left].map(nameOf));
    this.squeeze();
    if (!this.isLong) return;
    // Whole pixels could add up to one more than there is.
    const widths = heads.map((head) => head.getBoundingClientRect().width);
    heads.forEach((head, index) => (head.style.width = widths[index] ? `${widths[index]}px` : ""));
    this.table.classList.add("fixed");
  }

  /** Leave out further columns if the table has become too wide. */
  squeeze() {
    for (const index of this.order) {
      if (this.box.scrollWidth <= this.box.clientWidth) break;
      if (this.left.has(index)) continue;
      this.left.add(index);
      this.table.classList.add(nameOf(index));
    }
    // A part that scrolls can be scrolled by keyboard.
    if (this.box.scrollWidth > this.box.clientWidth) this.box.tabIndex = 0;
    else this.box.removeAttribute("tabindex");
  }
}
