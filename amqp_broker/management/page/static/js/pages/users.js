import { get, remove, set } from "../api.js";
import { h, toast } from "../dom.js";
import { confirm, dialog, form } from "../form.js";
import { capital, counted, path } from "../format.js";
import { detail, list as listPage, part } from "../list.js";
import { state } from "../state.js";
import { cell, Facts, link, Table, tags } from "../table.js";

const TAGS = ["administrator", "monitoring", "policymaker", "management", "impersonator"];
const listed = (value) => (Array.isArray(value) ? value : String(value ?? "").split(",")).filter(Boolean);

export function list() {
  const access = new Map();
  return listPage({
    title: "Users",
    path: () => "/api/users",
    before: async () => {
      const permissions = await get("/api/permissions");
      access.clear();
      for (const { user, vhost } of permissions) access.set(user, [...(access.get(user) ?? []), vhost]);
    },
    kinds: ["user", "permission"],
    isPaged: false,
    sort: "name",
    key: (one) => one.name,
    columns: [
      { title: "Name", sort: "name", wide: true, isHead: true, value: (one) => link(one.name, `#/users/${path(one.name)}`) },
      { title: "Tags", value: (one) => tags(...listed(one.tags).map((label) => [label])) },
      { title: "Virtual hosts", wide: true, value: (one) => (access.has(one.name) ? access.get(one.name).join(", ") : tags(["No access", "The user has no permission in any virtual host", "bad"])) },
      { title: "Password", value: (one) => (one.password_hash ? "set" : "none") },
      { title: "Limits", value: (one) => Object.entries(one.limits ?? {}).map(([name, value]) => `${name} ${value}`).join(", ") },
    ],
    actions: [h("button", { type: "button", class: "primary", "data-key": "n", onclick: () => edit(null), title: "n" }, "Add user")],
  });
}

function edit(user) {
  dialog({
    title: user ? `Change ${user.name}` : "Add a user",
    action: user ? "Change user" : "Add user",
    note: user ? "Leave the password empty to keep it." : "A user needs permissions in a virtual host to see it.",
    fields: [
      user ? null : { name: "name", label: "Name", required: true },
      { name: "password", label: "Password", type: "password", required: !user },
      ...TAGS.map((name) => ({ name: `tag-${name}`, label: name, type: "check", value: listed(user?.tags).includes(name) })),
    ],
    submit: async ({ name = user?.name, password, ...rest }) => {
      // Other tags, which have no box here, stay.
      const others = listed(user?.tags).filter((tag) => !TAGS.includes(tag));
      const tags = [...TAGS.filter((tag) => rest[`tag-${tag}`]), ...others];
      const proof = password || !user ? { password } : { password_hash: user.password_hash, hashing_algorithm: user.hashing_algorithm };
      await set(`/api/users/${path(name)}`, { ...proof, tags });
    },
    done: ({ name = user?.name }) => `User ${name} was ${user ? "changed" : "added"}`,
  });
}

/** Return the sentence about the connections that a user has. */
async function closing(name) {
  const connections = await get(`/api/connections/username/${path(name)}`).catch(() => null);
  return connections ? `${counted(connections.length, "connection")} will be closed.` : "Their connections will be closed.";
}

export function one(name) {
  const address = `/api/users/${path(name)}`;
  const facts = new Facts();
  let user = null;
  const permissions = permissionTable("vhost", "Virtual host");
  const setting = permissionForm({ user: name, done: () => page.refresh() });
  let isOffered = false;
  const topics = topicTable();
  const page = detail({
    title: name,
    kind: "User",
    back: ["Users", "#/users"],
    kinds: ["user", "permission", "topic", "vhost"],
    actions: [
      h("button", { type: "button", onclick: () => (user ? edit(user) : get(address).then(edit, (error) => toast(error.message, "error"))) }, "Change"),
      h(
        "button",
        {
          type: "button",
          class: "danger",
          onclick: async () =>
            confirm({
              title: `Delete user ${name}?`,
              note: await closing(name),
              action: "Delete user",
              submit: () => remove(address),
              done: () => {
                location.hash = "#/users";
                return `User ${name} was deleted`;
              },
            }),
        },
        "Delete",
      ),
    ],
    load: async () => {
      user = await get(address);
      facts.update([
        ["Tags", tags(...listed(user.tags).map((label) => [label]))],
        ["Password", user.password_hash ? "set" : "none"],
        ["Hashing", user.hashing_algorithm],
      ]);
      const given = await get(`${address}/permissions`);
      permissions.update(given);
      // A user without permissions needs some.
      if (!given.length && !isOffered) setting.open = true;
      isOffered = true;
      topics.update(await get(`${address}/topic-permissions`).catch(() => []));
    },
    content: [
      part("Details", facts.element),
      part("Permissions", permissions.element, setting),
      part("Topic permissions", topics.element, topicForm(name, () => page.refresh())),
    ],
  });
  return page;
}

/** Return a table of permissions of a user or in a virtual host; `by` is the column that varies. */
export function permissionTable(by, title) {
  return new Table({
    label: "Permissions",
    columns: [
      { title, value: (one) => link(one[by], `#/${by}s/${path(one[by])}`) },
      ...["configure", "write", "read"].map((kind) => ({ title: capital(kind), value: (one) => cell(`p${one[kind]}`, () => h("code", null, one[kind] === "" ? "(nothing)" : one[kind])) })),
      { title: "", numeric: true, value: (one) => cell(`${one.vhost}\n${one.user}`, () => clearButton(`/api/permissions/${path(one.vhost, one.user)}`)) },
    ],
    key: (one) => `${one.vhost} ${one.user}`,
    empty: "No permissions.",
  });
}

function clearButton(address) {
  return h("button", { type: "button", class: "quiet small", onclick: () => remove(address).then(() => toast("Permissions cleared"), (error) => toast(error.message, "error")) }, "Clear");
}

/** Return the form that sets permissions of this user or in this virtual host. */
export function permissionForm({ user = null, vhost = null, done }) {
  return h(
    "details",
    { class: "more" },
    h("summary", null, "Set permissions"),
    form({
      action: "Set permissions",
      fields: [
        user === null ? { name: "user", label: "User", required: true } : state.vhostField(),
        ...["configure", "write", "read"].map((name) => ({ name, label: capital(name), value: ".*", help: name === "configure" ? "A regular expression for names" : null })),
      ],
      submit: async (values) => {
        const { configure, write, read } = values;
        await set(`/api/permissions/${path(vhost ?? values.vhost, user ?? values.user)}`, { configure, write, read });
        toast("Permissions set");
        await state.loadVhosts();
        done();
      },
    }),
  );
}

function topicTable() {
  return new Table({
    label: "Topic permissions",
    columns: [
      { title: "Virtual host", value: (one) => one.vhost },
      { title: "Exchange", value: (one) => one.exchange || "(AMQP default)" },
      ...["write", "read"].map((kind) => ({ title: capital(kind), value: (one) => cell(`p${one[kind]}`, () => h("code", null, one[kind])) })),
      { title: "", numeric: true, value: (one) => cell(`${one.vhost}\n${one.exchange}`, () => clearButton(`/api/topic-permissions/${path(one.vhost, one.user, one.exchange)}`)) },
    ],
    key: (one) => `${one.vhost} ${one.exchange}`,
    empty: "No topic permissions: all routing keys are allowed.",
  });
}

function topicForm(user, done) {
  return h(
    "details",
    { class: "more" },
    h("summary", null, "Set topic permissions"),
    form({
      action: "Set topic permissions",
      fields: [state.vhostField(), { name: "exchange", label: "Exchange", value: "amq.topic" }, { name: "write", label: "Write", value: ".*" }, { name: "read", label: "Read", value: ".*" }],
      submit: async ({ vhost, ...rest }) => {
        await set(`/api/topic-permissions/${path(vhost, user)}`, rest);
        toast("Topic permissions set");
        done();
      },
    }),
  );
}
