'use strict'

const { spawn } = require('node:child_process')
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
  const [url, managementUrl] = lines
  // A broker that is not stopped keeps no process alive.
  const parts = [child, child.stdin, child.stdout, child.stderr]
  for (const part of parts) part.unref()
  return {
    url,
    managementUrl,
    port: Number(new URL(url).port),
    async stop() {
      for (const part of parts) part.ref()
      child.stdin.end()
      await ended
    },
  }
}

module.exports = { startBroker }
