// Package kubectl is the kubectl plugin `kubectl leeward`: the network of a cluster, and why pods and nodes are as they are.
//
// Each command gathers its data from the API server and from the service, makes one record, and prints it as a table or as
// JSON. Nothing is changed.
package kubectl

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/internal/help"
	"leeward.dev/kubernetes/snapshot"
)

// Exit codes.
const (
	exitOK = iota
	// exitProblem means that the command failed, or that `check` found a problem.
	exitProblem
	// exitUsage means that an argument is invalid.
	exitUsage
)

// Variables of the environment that replace flags.
const (
	controllerVariable = "LEEWARD_CONTROLLER"
	tokenFileVariable  = "LEEWARD_TOKEN_FILE"
	authorityVariable  = "LEEWARD_CA_FILE"
	// tokenVariable has the token itself, as for the commands of `leeward`. A file comes first.
	tokenVariable = "LEEWARD_TOKEN"
)

// Bounds of --timeout.
const (
	leastTimeout = 100 * time.Millisecond
	mostTimeout  = 10 * time.Minute
	// wholeDeadlines is the number of deadlines of [snapshot.Settings] that a whole snapshot has.
	wholeDeadlines = 10
)

// settingFlags are the flags of settings of the connection with another name.
var settingFlags = map[string]string{"controllers": "controller", "authority": "ca"}

// record is the result of a command.
type record interface {
	// table writes the record for people.
	table(to io.Writer)
}

// command is a subcommand.
type command struct {
	name, arguments, summary string
	// examples follow the name of the plugin.
	examples []string
	// flags adds the command's own flags.
	flags func(*flag.FlagSet, *options)
	run   func(ctx context.Context, from *Sources, o *options) (record, error)
}

// options are the flags of all commands.
type options struct {
	kubeconfig, context, namespace string
	controllers, token, authority  string
	// secret is the token without a file.
	secret, output string
	timeout        time.Duration
	// nodes and limit are flags of `top`; evictor and scheduler are flags of `explain`, `hotspots` and `check`.
	nodes              bool
	limit              int
	evictor, scheduler string
	arguments          []string
}

// Sources are where commands read.
type Sources struct {
	Kube kubernetes.Interface
	// Dynamic reads traffic matrices.
	Dynamic dynamic.Interface
	// Service and Snapshots are clients of the service.
	Service   *httpapi.Client
	Snapshots *snapshot.Client
	// Namespace is that of pods without one in their name.
	Namespace string
	Now       time.Time
}

// usageError is an invalid argument.
type usageError struct{ problem string }

func (e *usageError) Error() string { return e.problem }

func usage(format string, arguments ...any) error {
	return &usageError{problem: fmt.Sprintf(format, arguments...)}
}

// commands lists the subcommands.
func commands() []command {
	return []command{topCommand, explainCommand, hotspotsCommand, checkCommand}
}

// Run runs the plugin with the arguments after its name, and returns the exit code. variable returns a variable of the
// environment. open returns the sources; tests replace it.
func Run(
	ctx context.Context, arguments []string, stdout, stderr io.Writer, variable func(string) string,
	open func(*Connection) (*Sources, error),
) int {
	err := run(ctx, arguments, stdout, variable, open)
	var invalid *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errFound):
		return exitProblem
	case errors.As(err, &invalid):
		fmt.Fprintf(stderr, "error: %s\nhint: `kubectl leeward --help` lists commands and flags\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "error: %s\n", err)
	return exitProblem
}

// errFound says that `check` printed a problem.
var errFound = errors.New("the check found a problem")

func run(
	ctx context.Context, arguments []string, stdout io.Writer, variable func(string) string,
	open func(*Connection) (*Sources, error),
) error {
	if len(arguments) == 0 || isHelp(arguments[0]) {
		writeHelp(stdout)
		return nil
	}
	for _, c := range commands() {
		if c.name == arguments[0] {
			return c.execute(ctx, arguments[1:], stdout, variable, open)
		}
	}
	return usage("%q: no such command: expected top, explain, hotspots or check", arguments[0])
}

func isHelp(argument string) bool {
	return argument == "help" || argument == "--help" || argument == "-help" || argument == "-h"
}

func (c command) execute(
	ctx context.Context, arguments []string, stdout io.Writer, variable func(string) string,
	open func(*Connection) (*Sources, error),
) error {
	o := &options{}
	set := c.flagSet(o, variable)
	set.SetOutput(io.Discard)
	rest := arguments
	for len(rest) > 0 {
		// Flags may come after other arguments, as in kubectl.
		if err := set.Parse(rest); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				c.help().Write(stdout, set)
				return nil
			}
			return usage("%s", help.Problem(err))
		}
		if rest = set.Args(); len(rest) > 0 {
			o.arguments, rest = append(o.arguments, rest[0]), rest[1:]
		}
	}
	if o.output != "table" && o.output != "json" {
		return usage("--output: %q: expected table or json", o.output)
	}
	if o.timeout < leastTimeout || o.timeout > mostTimeout {
		return usage("--timeout: %v: expected %v to %v", o.timeout, leastTimeout, mostTimeout)
	}
	if o.controllers == "" {
		return usage("--controller: missing: name the address of the service, or set %s", controllerVariable)
	}
	settings := o.settings()
	if _, err := settings.WithDefaults(); err != nil {
		return usage("%s", help.ByFlag(set, err, settingFlags))
	}
	if _, err := settings.TLS(); err != nil {
		return usage("%s", help.ByFlag(set, err, settingFlags))
	}
	sources, err := open(&Connection{
		Kubeconfig: o.kubeconfig, Context: o.context, Namespace: o.namespace, Service: settings, Timeout: o.timeout,
	})
	if err != nil {
		return err
	}
	result, err := c.run(ctx, sources, o)
	if err != nil {
		return err
	}
	if err := write(stdout, result, o.output); err != nil {
		return err
	}
	if found, ok := result.(*Check); ok && !found.OK {
		return errFound
	}
	return nil
}

// settings returns those of the connection to the service.
func (o *options) settings() snapshot.Settings {
	settings := snapshot.Settings{
		Controllers: strings.Split(o.controllers, ","), TokenFile: o.token, AuthorityFile: o.authority,
		Deadline: o.timeout / wholeDeadlines, MaxAge: time.Hour, Windows: true,
	}
	if o.token == "" {
		settings.BearerToken = o.secret
	}
	return settings
}

// evictorFlags adds the flags about the evictor.
func evictorFlags(set *flag.FlagSet, o *options) {
	set.StringVar(&o.scheduler, "scheduler", "leeward-scheduler",
		"`name` of the scheduler with the plugins, or several with commas; "+everyScheduler+" for all")
	set.StringVar(&o.evictor, "evictor", "leeward/leeward-evictor", "`namespace/name` of the evictor's ConfigMap")
}

// everyScheduler stands for all schedulers.
const everyScheduler = "*"

// schedulers returns the names of the schedulers with the plugins, nil for all.
func (o *options) schedulers() []string {
	if o.scheduler == everyScheduler {
		return nil
	}
	return strings.Split(o.scheduler, ",")
}

// evictorName returns the namespace and the name of the evictor's ConfigMap.
func (o *options) evictorName() (namespace, name string, err error) {
	namespace, name, found := strings.Cut(o.evictor, "/")
	if !found || namespace == "" || name == "" {
		return "", "", usage("--evictor: %q: expected NAMESPACE/NAME", o.evictor)
	}
	return namespace, name, nil
}

func write(to io.Writer, result record, output string) error {
	if output == "table" {
		result.table(to)
		return nil
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

// flagSet returns the flags of a command.
func (c command) flagSet(o *options, variable func(string) string) *flag.FlagSet {
	set := flag.NewFlagSet("kubectl leeward "+c.name, flag.ContinueOnError)
	set.StringVar(&o.controllers, "controller", variable(controllerVariable),
		"`address` of the service, or several with commas; by default the variable "+controllerVariable)
	o.secret = variable(tokenVariable)
	set.StringVar(&o.token, "token-file", variable(tokenFileVariable),
		"`file` with the token for the service; by default the variable "+tokenFileVariable+", or the token in "+tokenVariable)
	for _, name := range []string{"ca", "ca-file"} {
		set.StringVar(&o.authority, name, variable(authorityVariable),
			"`file` with the certificates of the service's authority; by default the variable "+authorityVariable+", or those of the system")
	}
	set.StringVar(&o.kubeconfig, "kubeconfig", "", "`file` with the connection to the API server, as for kubectl")
	set.StringVar(&o.context, "context", "", "`name` of the context in that file")
	for _, name := range []string{"namespace", "n"} {
		set.StringVar(&o.namespace, name, "", "`name` of the namespace of pods")
	}
	for _, name := range []string{"output", "o"} {
		set.StringVar(&o.output, name, "table", "`format`: table or json")
	}
	set.DurationVar(&o.timeout, "timeout", 10*time.Second, "longest `time` for each response; a large cluster needs many")
	if c.flags != nil {
		c.flags(set, o)
	}
	return set
}

func (c command) help() help.Command {
	described := help.Command{Usage: "kubectl leeward " + c.name + c.arguments, Summary: c.summary}
	for _, example := range c.examples {
		described.Examples = append(described.Examples, "kubectl leeward "+example)
	}
	return described
}

func writeHelp(to io.Writer) {
	fmt.Fprint(to, "The network of a cluster, as Leeward knows it.\n\nUsage: kubectl leeward COMMAND [flags]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(to, "  %-10s %s\n", c.name, c.summary)
	}
	fmt.Fprint(to, "\nExamples:\n")
	for _, c := range commands() {
		fmt.Fprintf(to, "  kubectl leeward %s\n", c.examples[0])
	}
	fmt.Fprint(to, "\n`kubectl leeward COMMAND --help` has the flags and examples of a command.\n")
}

// Connection says how to reach the API server and the service.
type Connection struct {
	Kubeconfig, Context, Namespace string
	Service                        snapshot.Settings
	Timeout                        time.Duration
}

// Open connects as kubectl does.
func (c *Connection) Open() (*Sources, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.Context}
	overrides.Context.Namespace = c.Namespace
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.Timeout = c.Timeout
	// A cluster has many pods, which come in pages.
	config.QPS, config.Burst = 50, 100
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	requests, err := httpapi.New(c.Service, c.Timeout)
	if err != nil {
		return nil, err
	}
	snapshots, err := snapshot.NewClient(c.Service)
	if err != nil {
		return nil, err
	}
	return &Sources{
		Kube: kube, Dynamic: objects, Service: requests, Snapshots: snapshots, Namespace: namespace, Now: time.Now(),
	}, nil
}
