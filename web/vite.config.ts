/// <reference types="vitest/config" />
import { svelte } from '@sveltejs/vite-plugin-svelte'
import { defineConfig, type Plugin } from 'vite'
import { Mock } from './mock/server.ts'

/** Address of a service for `npm run dev`, such as `LEEWARD=http://127.0.0.1:7600`; without it, a simulated one. */
const service = process.env['LEEWARD']

/** Plugin that serves /v1 from a simulated cluster with one tick per second. */
function simulatedService(): Plugin {
  return {
    name: 'simulated-service',
    apply: 'serve',
    configureServer(server) {
      const mock = new Mock({ demo: true, lab: 8 })
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
  plugins: [svelte(), ...(service || process.env['VITEST'] ? [] : [simulatedService()])],
  server: service ? { proxy: { '/v1': service } } : {},
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  test: { include: ['{src,mock}/**/*.test.ts'] },
})
