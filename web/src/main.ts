import 'uplot/dist/uPlot.min.css'
import './style.css'
import { mount } from 'svelte'
import App from './App.svelte'
import { app } from './state/app.svelte'

app.start()
mount(App, { target: document.getElementById('app') as HTMLElement })
