/// <reference types="vitest/config" />
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig, type Plugin } from 'vite'
import { Mock } from './mock/server.ts'

/** A service to develop against, `LEEWARD=http://127.0.0.1:7600 npm run dev`; else a simulated one. */
const service = process.env['LEEWARD']

/** Answers /v1 from a simulated cluster that goes on by itself. */
function simulated(): Plugin {
  return {
    name: 'simulated-service',
    apply: 'serve',
    configureServer(server) {
      const mock = new Mock({ demo: true })
      const timer = setInterval(() => mock.tick(), 1000)
      server.httpServer?.once('close', () => clearInterval(timer))
      server.middlewares.use((request, response, next) => {
        if (request.url?.startsWith('/v1/')) mock.answer(request, response)
        else next()
      })
    },
  }
}

export default defineConfig({
  base: './',
  plugins: [svelte(), ...(service || process.env['VITEST'] ? [] : [simulated()])],
  server: service ? { proxy: { '/v1': service } } : {},
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  test: { include: ['src/**/*.test.ts'] },
})
