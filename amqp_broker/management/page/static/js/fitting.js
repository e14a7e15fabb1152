// Columns that a table has no room for are left out: the least important first, the one that names the row never.

const CLASS = "without-";
// tables.css has a rule for each column up to this one.
const COLUMNS_MAX = 18;

/** Return the places of columns in the order in which they are left out. */
function order(columns) {
  const rank = (column) => (column.isHead ? 3 : column.isKept || !column.title ? 2 : column.minor ? 0 : 1);
  const places = columns.map((column, index) => ({ index, rank: rank(column) })).filter((one) => one.rank < 3 && one.index < COLUMNS_MAX);
  // A table always keeps a column.
  if (places.length === columns.length) places.shift();
  return places.sort((one, other) => one.rank - other.rank || other.index - one.index).map((one) => one.index);
}

/** Leaves out columns of a table as long as it is wider than its box. */
export class Fitting {
  constructor(box, table, columns) {
    this.box = box;
    this.table = table;
    this.order = order(columns);
    this.left = [];
    this.width = 0;
    new ResizeObserver(() => this.resize()).observe(box);
  }

  resize() {
    if (this.box.clientWidth === this.width) return;
    this.width = this.box.clientWidth;
    this.fit();
  }

  /** Show all columns that there is room for. */
  fit() {
    this.table.classList.remove(...this.left);
    this.left = [];
    this.squeeze();
  }

  /** Leave out further columns if the table has become too wide. */
  squeeze() {
    while (this.left.length < this.order.length && this.box.scrollWidth > this.box.clientWidth) {
      this.left.push(`${CLASS}${this.order[this.left.length] + 1}`);
      this.table.classList.add(this.left.at(-1));
    }
    // A part that scrolls can be scrolled by keyboard.
    if (this.box.scrollWidth > this.box.clientWidth) this.box.tabIndex = 0;
    else this.box.removeAttribute("tabindex");
  }
}
