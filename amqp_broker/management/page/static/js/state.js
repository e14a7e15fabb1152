// The user who is logged in, and the selected virtual host ("" for all).

import { get } from "./api.js";
import { path } from "./format.js";

const INCLUDES = {
  administrator: ["administrator"],
  monitoring: ["administrator", "monitoring"],
  policymaker: ["administrator", "policymaker"],
};

export const state = {
  user: null,
  vhosts: [],
  vhost: sessionStorage.getItem("vhost") ?? "",

  /** Return whether the user has a tag, or another tag that includes it. */
  is(tag) {
    const tags = Array.isArray(this.user?.tags) ? this.user.tags : String(this.user?.tags ?? "").split(",");
    return INCLUDES[tag].some((one) => tags.includes(one));
  },

  async loadVhosts() {
    this.vhosts = (await get("/api/vhosts")).map((vhost) => vhost.name).sort();
    if (this.vhost && !this.vhosts.includes(this.vhost)) this.vhost = "";
  },

  /** Return the address of a list for the selected virtual host, or for all. */
  listPath(list) {
    return this.vhost === "" ? `/api/${list}` : `/api/${list}/${path(this.vhost)}`;
  },

  /** The virtual host for new objects. */
  get newVhost() {
    return this.vhost || (this.vhosts.includes("/") ? "/" : (this.vhosts[0] ?? "/"));
  },

  /** Return a form field that selects a virtual host. */
  vhostField() {
    return { name: "vhost", label: "Virtual host", type: "select", options: this.vhosts, value: this.newVhost };
  },
};
