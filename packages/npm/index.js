'use strict'

const { spawn } = require('node:child_process')
const { randomBytes } = require('node:crypto')
const { createInterface } = require('node:readline')

// It prints where the broker is, and ends when the pipe to it is closed: when this process ends, however it ends.
const WAITING = 'printf "%s\\n%s\\n" "$AMQP_URL" "$RABBITMQ_MANAGEMENT_URL"; exec cat'
const MISSING = 'amqp-broker is not installed. Put the file amqp-broker into PATH, or name it in AMQP_BROKER_PROGRAM.'

/** Start a broker on free ports, in memory. The words of `options` are options of `amqp-broker serve`. */
async function startBroker({ program = process.env.AMQP_BROKER_PROGRAM || 'amqp-broker', options = [] } = {}) {
  const child = spawn(program, ['run', ...options, '--', 'sh', '-c', WAITING], { stdio: ['pipe', 'pipe', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (text) => { errors = (errors + text).slice(-10_000) })
  // A broker that is killed closes the pipe.
  child.stdin.on('error', () => {})
  const ended = new Promise((resolve) => child.once('close', resolve))
  const lines = []
  await new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new Error(`${program}: ${error.code === 'ENOENT' ? MISSING : error.message}`)))
    child.once('close', (code) => reject(new Error(errors.trim() || `${program} printed no address and ended with ${code}`)))
    createInterface({ input: child.stdout }).on('line', (line) => { if (lines.push(line) === 2) resolve() })
  })
  return new Broker(child, ended, lines[0], lines[1])
}

class Broker {
  #child
  #ended
  #request
  #isStopped = false

  constructor(child, ended, url, managementUrl) {
    this.#child = child
    this.#ended = ended
    this.url = url
    this.managementUrl = managementUrl
    this.port = Number(new URL(url).port)
    this.#request = requesting(url, managementUrl)
    this.clock = new Clock(this.#request)
    this.faults = new Faults(this.#request)
    // A broker that is not stopped keeps no process alive.
    for (const part of this.#parts()) part.unref()
  }

  async vhost() {
    const name = `test-${randomBytes(6).toString('hex')}`
    const { is_frozen: wasFrozen } = await this.#request('GET', '/_broker/clock')
    await this.#request('PUT', `/api/vhosts/${name}`)
    const remove = async () => {
      // The vhosts of a stopped broker are gone.
      if (this.#isStopped) return
      await this.#request('DELETE', `/api/vhosts/${name}`)
      // The clock is the next test's, too.
      if (!wasFrozen) await this.clock.resume()
    }
    return new VHost(this, name, new Faults(this.#request, name), remove)
  }

  async stop() {
    this.#isStopped = true
    for (const part of this.#parts()) part.ref()
    this.#child.stdin.end()
    await this.#ended
  }

  #parts() {
    return [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr]
  }
}

class VHost {
  constructor(broker, name, faults, remove) {
    this.broker = broker
    this.name = name
    this.url = broker.url.slice(0, broker.url.lastIndexOf('/') + 1) + name
    this.faults = faults
    this.delete = remove
  }
}

class Faults {
  #request
  #vhost

  constructor(request, vhost) {
    this.#request = request
    this.#vhost = vhost
  }

  add(action, fields = {}) {
    return this.#request('POST', '/_broker/faults', { vhost: this.#vhost, ...fields, action })
  }

  async hits(rule) {
    return (await this.#request('GET', `/_broker/faults/${rule.id}`)).hits
  }

  async release(rule, count = 1) {
    return (await this.#request('POST', `/_broker/faults/${rule.id}/release`, { count })).released
  }

  async remove(rule) {
    await this.#request('DELETE', `/_broker/faults/${rule.id}`)
  }

  async clear() {
    await this.#request('DELETE', `/_broker/faults${this.#vhost ? `?vhost=${this.#vhost}` : ''}`)
  }
}

class Clock {
  #request

  constructor(request) {
    this.#request = request
  }

  async nowMs() {
    return (await this.#request('GET', '/_broker/clock')).now_ms
  }

  async advance(duration) {
    const body = typeof duration === 'string' ? { duration } : { ms: duration }
    await this.#request('POST', '/_broker/clock/advance', body)
  }

  async freeze() {
    await this.#request('POST', '/_broker/clock/freeze')
  }

  async resume() {
    await this.#request('POST', '/_broker/clock/resume')
  }
}

/** Return a function that sends a request to the HTTP API as the user of a URL, and returns the answer. */
function requesting(url, managementUrl) {
  const { username, password } = new URL(url)
  const login = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')
  const headers = { authorization: `Basic ${login}`, 'content-type': 'application/json' }
  return async (method, path, body) => {
    if (!managementUrl) throw new Error('the HTTP API is not served: an option of the broker says so')
    const answer = await fetch(managementUrl + path, { method, headers, body: JSON.stringify(body) })
    const text = await answer.text()
    const document = text ? JSON.parse(text) : undefined
    if (!answer.ok) throw new Error(document.reason)
    return document
  }
}

module.exports = { startBroker }
