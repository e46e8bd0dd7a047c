package fake

import (
	"context"
	"net"
	"net/http"
	"time"
)

// Serve serves the controller at an address of the loopback interface until the context ends. Meanwhile time passes in the
// network: every interval, all links report. Zero stands for a network without reports.
func (c *Controller) Serve(ctx context.Context, interval time.Duration) (address string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	// The clocks of clients are those of the machine.
	c.Change(func(n *Network) { n.Advance(time.Since(n.Time)) })
	server := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if interval > 0 {
		go c.report(ctx, interval)
	}
	return "http://" + listener.Addr().String(), nil
}

func (c *Controller) report(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			c.Change(func(n *Network) { n.Advance(now.Sub(n.Time)) })
		}
	}
}

// RackOf returns the rack of each host.
func (n *Network) RackOf() map[string]string {
	racks := make(map[string]string, len(n.Hosts))
	for _, host := range n.Hosts {
		racks[host.Name] = host.Rack
	}
	return racks
}
