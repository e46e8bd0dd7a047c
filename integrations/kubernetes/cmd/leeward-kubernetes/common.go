package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/metrics"

	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/internal/help"
	"leeward.dev/kubernetes/snapshot"
)

// Times of the leader election, those of Kubernetes' own controllers.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// endDeadline is the time for the last work and for open requests at the end.
	endDeadline = 10 * time.Second
	// eventsTime is the time for the last events. The recorder hands each to a goroutine, and nothing waits for these.
	eventsTime = time.Second
)

// connectionFlags are the flags of settings of the connection with another name.
var connectionFlags = map[string]string{"controllers": "controller", "authority": "ca", "interval": "snapshot-interval"}

// namespaceFile has the namespace of a pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// common are the flags of all commands.
type common struct {
	set                             *flag.FlagSet
	kubeconfig, namespace, name     string
	controllers, token, authority   string
	listen, identity                string
	qps                             float64
	elect                           bool
	deadline, snapshotInterval, age time.Duration
}

// flags adds the flags. name is the default of --name, and objects are those that have this name.
func (c *common) flags(set *flag.FlagSet, name, objects string) {
	c.set = set
	set.StringVar(&c.kubeconfig, "kubeconfig", "", "`file` with the connection to the API server; by default that of the pod")
	set.StringVar(&c.namespace, "namespace", ownNamespace(), "`namespace` "+objects)
	set.StringVar(&c.name, "name", name, "`name` "+objects)
	set.StringVar(&c.controllers, "controller", os.Getenv("LEEWARD_CONTROLLER"),
		"`address` of the service, or several with commas; by default the variable LEEWARD_CONTROLLER")
	set.StringVar(&c.token, "token-file", "", "`file` with the token for the service")
	for _, alias := range []string{"ca", "ca-file"} {
		set.StringVar(&c.authority, alias, "", "`file` with the certificates of the service's authority; by default those of the system")
	}
	set.StringVar(&c.listen, "listen", ":8080", "`address` of /healthz, /readyz and /metrics")
	set.StringVar(&c.identity, "identity", "", "`name` of this process in the leader election; by default that of its host")
	set.BoolVar(&c.elect, "leader-elect", true, "decide only as the holder of the Lease")
	set.Float64Var(&c.qps, "kube-api-qps", 20, "largest `number` of requests a second to the API server")
	set.DurationVar(&c.deadline, "deadline", httpapi.DefaultDeadline, "longest `time` for a response of the service")
}

func ownNamespace() string {
	text, err := os.ReadFile(namespaceFile)
	if namespace := strings.TrimSpace(string(text)); err == nil && namespace != "" {
		return namespace
	}
	return "leeward"
}

// parse parses the flags. Everything that follows them is an error.
func parse(set *flag.FlagSet, arguments []string) error {
	if err := set.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %s", errUsage, help.Problem(err))
	}
	if set.NArg() > 0 {
		return fmt.Errorf("%w: %q: expected flags only", errUsage, set.Arg(0))
	}
	return nil
}

// invalid returns the error of a setting as one that names its flag.
func (c *common) invalid(err error) error {
	return fmt.Errorf("%w: %w", errUsage, help.ByFlag(c.set, err, nil))
}

// process is a running command: its clients, its metrics and its health.
type process struct {
	common
	kube     kubernetes.Interface
	service  *httpapi.Client
	settings snapshot.Settings
	registry metrics.KubeRegistry
	events   events.EventBroadcaster
	watchdog *leaderelection.HealthzAdaptor
	ready    atomic.Bool
	// asks is true while the command waits for settings of the service.
	asks atomic.Bool
	log  *slog.Logger
}

// start connects, and serves health and metrics until the context ends.
func (c *common) start(ctx context.Context, log *slog.Logger) (*process, error) {
	if c.controllers == "" {
		return nil, fmt.Errorf("%w: --controller: missing: name the address of the service", errUsage)
	}
	p := &process{
		common: *c, registry: metrics.NewKubeRegistry(), log: log,
		watchdog: leaderelection.NewLeaderHealthzAdaptor(leaseDuration),
		settings: snapshot.Settings{
			Controllers: strings.Split(c.controllers, ","), TokenFile: c.token, AuthorityFile: c.authority,
			Interval: c.snapshotInterval, MaxAge: c.age,
		},
	}
	var err error
	if p.service, err = httpapi.New(p.settings, c.deadline); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, help.ByFlag(c.set, err, connectionFlags))
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.QPS, config.Burst = float32(c.qps), int(2*c.qps)+1
	config.UserAgent = "leeward-kubernetes"
	if p.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if p.identity == "" {
		if p.identity, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("--identity: missing, and this host has no name: %w", err)
		}
	}
	if err := p.record(ctx); err != nil {
		return nil, err
	}
	return p, p.serve(ctx)
}

// record writes events until the end of the process: those of the last work come after the end of the context.
func (p *process) record(ctx context.Context) error {
	p.events = events.NewBroadcaster(&events.EventSinkImpl{Interface: p.kube.EventsV1()})
	if err := p.events.StartRecordingToSinkWithContext(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	return nil
}

func (p *process) recorder() events.EventRecorder { return p.events.NewRecorder(scheme.Scheme, p.name) }

// serve serves health and metrics until the context ends.
func (p *process) serve(ctx context.Context) error {
	listener, err := net.Listen("tcp", p.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	server := &http.Server{Handler: p.handler(), ReadHeaderTimeout: endDeadline}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.log.Error("health and metrics are not served any more", "problem", err.Error())
		}
	}()
	context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endDeadline)
		defer cancel()
		_ = server.Shutdown(ctx)
	})
	p.log.Info("serving health and metrics", "address", listener.Addr().String())
	return nil
}

// handler answers /healthz, /readyz and /metrics.
func (p *process) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.HandlerFor(p.registry, metrics.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, request *http.Request) {
		// A leader that cannot renew its Lease, and does not notice, must restart.
		if err := p.watchdog.Check(request); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case p.asks.Load():
			http.Error(w, "waiting for the service at "+p.controllers, http.StatusServiceUnavailable)
		case !p.ready.Load():
			http.Error(w, "the lists of objects are not complete yet", http.StatusServiceUnavailable)
		}
	})
	return mux
}

// run leads until the context ends, and then writes the last events.
func (p *process) run(ctx context.Context, work func(context.Context)) error {
	err := p.lead(ctx, work)
	time.Sleep(eventsTime)
	return err
}

// lead runs work while this process holds the Lease, until the context ends. It returns once the work has ended, or after
// endDeadline; and an error if the Lease is lost.
func (p *process) lead(ctx context.Context, work func(context.Context)) error {
	if !p.elect {
		work(ctx)
		return nil
	}
	// The elector does not wait for the work. working is locked while it runs.
	var working sync.Mutex
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metaOf(p.namespace, p.name), Client: p.kube.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: p.identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, WatchDog: p.watchdog, Name: p.name,
		// The last request of the former leader may still be under way. It changes nothing then: the evictor's record and the
		// sync's patch need the version that they were based on.
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				working.Lock()
				defer working.Unlock()
				if ctx.Err() == nil {
					p.log.Info("leader", "identity", p.identity)
					work(ctx)
				}
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				if identity != p.identity {
					p.log.Info("follower", "leader", identity)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	p.watchdog.SetLeaderElection(elector)
	elector.Run(ctx)
	ended := make(chan struct{})
	go func() {
		working.Lock()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(endDeadline):
		p.log.Warn("the last work has not ended", "deadline", endDeadline)
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("the Lease is lost: another process leads, or the API server is away")
}
