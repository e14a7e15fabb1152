// Requests to the HTTP API with the name and password of the login form. They are kept for this tab only, and never in
// an address. Requests omit the browser's own credentials, so that it shows no login dialog.

const KEY = "authorization";
// The path before /js/api.js: management.path_prefix.
const PREFIX = new URL("..", import.meta.url).pathname.replace(/\/+$/, "");

class ApiError extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

let onLoggedOut = () => {};
export const whenLoggedOut = (listener) => (onLoggedOut = listener);
export const isLoggedIn = () => sessionStorage.getItem(KEY) !== null;

function authorization(name, password) {
  const octets = new TextEncoder().encode(`${name}:${password}`);
  return "Basic " + btoa(String.fromCharCode(...octets));
}

/** Log in. Throw ApiError if the broker refuses the login. */
export async function logIn(name, password) {
  const given = authorization(name, password);
  const user = await request("GET", "/api/whoami", undefined, given);
  sessionStorage.setItem(KEY, given);
  return user;
}

export function logOut() {
  sessionStorage.removeItem(KEY);
  onLoggedOut();
}

export function ask(path, signal, given = sessionStorage.getItem(KEY), method = "GET", body = undefined) {
  const headers = { Authorization: given ?? "" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const content = body === undefined || body instanceof Blob ? body : JSON.stringify(body);
  return fetch(PREFIX + path, { method, headers, body: content, signal, credentials: "omit", cache: "no-store" });
}

/** Return the value of an answer. Throw ApiError. */
const request = async (...asked) => (await answerTo(...asked)).value;

async function answerTo(method, path, body, given) {
  let response;
  try {
    response = await ask(path, undefined, given, method, body);
  } catch {
    throw new ApiError(0, "The broker does not answer");
  }
  const content = await response.text();
  let value = null;
  try {
    value = content ? JSON.parse(content) : null;
  } catch {
    value = { reason: content };
  }
  if (!response.ok) {
    const reason = typeof value?.reason === "string" ? value.reason : `${response.status} ${response.statusText}`;
    const isLoginRefused = response.status === 401 && /^(Login failed|Not_Authorized)$/.test(reason);
    // Log out if the credentials are no longer valid; show other refusals.
    if (isLoginRefused && given === undefined) logOut();
    throw new ApiError(response.status, isLoginRefused ? "Login failed" : reason);
  }
  return { value, content };
}

/** Return the value of a document and its text: JavaScript's numbers are not exact beyond 2^53, and 1.0 is 1. */
export const getDocument = (path) => answerTo("GET", path);
export const get = (path) => request("GET", path);
export const post = (path, body = {}) => request("POST", path, body);
export const set = (path, body = {}) => request("PUT", path, body);
export const remove = (path) => request("DELETE", path);
