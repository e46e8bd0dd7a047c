package main

// settings are those of a cell.
type settings struct {
	seed uint64
	// interval is the length of a step, and restart the time for which a moved task is down, in simulated seconds.
	interval, restart float64
	// networkShare is the share of a tolerant task's work that waits for the network.
	networkShare float64
}

// cell has the tasks of a run, their work and their traffic. Time is in steps. It knows nothing of Kubernetes.
//
// Tasks behave as in the simulator of cells: a rate is drawn for five minutes, a tolerant task is slowed by a full link, and
// a moved task is down for its restart and ends as much later.
type cell struct {
	settings
	tasks  []task
	levels levels
	fabric *fabric
	works  []work
	// next is the first task that has not arrived.
	next int
	// sending are the tasks that send, in any order.
	sending []int
}

// work is the state of a task.
type work struct {
	// left is the rest of its run time in seconds.
	left float64
	// rack is that of its node while it sends, and at its position among the sending tasks; both -1 otherwise.
	rack, at int
	// from is the first step at which it may send.
	from  int
	rates [2]int64
}

func newCell(of settings, tasks []task, fabric *fabric) *cell {
	c := &cell{
		settings: of, tasks: tasks, levels: newLevels(of.seed, of.interval), fabric: fabric, works: make([]work, len(tasks)),
	}
	for i := range c.works {
		c.works[i] = work{left: tasks[i].duration, rack: -1, at: -1}
	}
	return c
}

// arrivals returns the tasks that have arrived by a step, each once.
func (c *cell) arrivals(step int) []int {
	now := float64(step) * c.interval
	var arrived []int
	for c.next < len(c.tasks) && c.tasks[c.next].arrives <= now {
		arrived = append(arrived, c.next)
		c.next++
	}
	return arrived
}

// start lets a task on a node of a rack send, from the next settle on.
func (c *cell) start(task, rack int) {
	of := &c.works[task]
	if of.rack >= 0 {
		return
	}
	of.rack, of.at = rack, len(c.sending)
	c.sending = append(c.sending, task)
}

// move stops a task at a step; it may send again after its restart.
func (c *cell) move(task, step int) {
	c.stop(task)
	c.works[task].from = step + int(c.restart/c.interval+0.999999)
}

// mayStart returns true if the restart of a task is over at a step.
func (c *cell) mayStart(task, step int) bool { return step >= c.works[task].from }

func (c *cell) stop(task int) {
	of := &c.works[task]
	if of.at < 0 {
		return
	}
	last := c.sending[len(c.sending)-1]
	c.sending[of.at], c.works[last].at = last, of.at
	c.sending = c.sending[:len(c.sending)-1]
	of.rack, of.at = -1, -1
}

// settle draws the rates of a step, and puts them on the links.
func (c *cell) settle(step int) {
	c.fabric.clear()
	for _, number := range c.sending {
		of := &c.works[number]
		level := c.levels.level(uint64(number), uint64(step), c.tasks[number].peak)
		for side, mean := range c.tasks[number].means {
			of.rates[side] = int64(float64(mean)*level + 0.5)
		}
		c.fabric.add(of.rack, of.rates)
	}
	c.fabric.settle()
}

// advance lets all sending tasks work for a step, and returns those that have finished. They no longer send.
func (c *cell) advance() []int {
	var finished []int
	for _, number := range c.sending {
		of := &c.works[number]
		of.left -= c.interval * c.speed(number)
		if of.left <= 1e-6*c.interval {
			finished = append(finished, number)
		}
	}
	for _, number := range finished {
		c.stop(number)
	}
	return finished
}

// speed returns the relative speed of a task: a share of the work of a tolerant one waits for the network.
func (c *cell) speed(number int) float64 {
	if !c.tasks[number].tolerant || c.networkShare == 0 {
		return 1
	}
	of, share := &c.works[number], 1.0
	for side, rate := range of.rates {
		if rate > 0 {
			share = min(share, c.fabric.links[side][of.rack].share)
		}
	}
	return share / ((1-c.networkShare)*share + c.networkShare)
}
