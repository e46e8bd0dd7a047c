package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
)

// verbs are those of all resources. The others are verbs of single resources.
var (
	verbs  = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	others = []string{
		"/users:impersonate", "/groups:impersonate", "/serviceaccounts:impersonate",
		"rbac.authorization.k8s.io/roles:bind", "rbac.authorization.k8s.io/roles:escalate",
		"rbac.authorization.k8s.io/clusterroles:bind", "rbac.authorization.k8s.io/clusterroles:escalate",
		"certificates.k8s.io/signers:approve", "certificates.k8s.io/signers:sign", "*/*:*",
	}
)

// everyRight returns each right that the API server knows, as group/resource:verb, with true for objects of namespaces.
func everyRight(t *testing.T) map[string]bool {
	t.Helper()
	_, lists, err := plane.Client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	rights := map[string]bool{}
	for _, other := range others {
		rights[other] = true
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			for _, verb := range verbs {
				rights[fmt.Sprintf("%s/%s:%s", version.Group, resource.Name, verb)] = resource.Namespaced
			}
		}
	}
	if len(rights) < 500 {
		t.Fatalf("only %d rights", len(rights))
	}
	return rights
}

// allowed returns the rights that the API server grants a user in a namespace, for objects of a name.
func allowed(t *testing.T, of map[string]bool, user, namespace, name string) map[string]bool {
	t.Helper()
	groups := []string{"system:authenticated"}
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		of, _, _ := strings.Cut(account, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+of)
	}
	rights := slices.Sorted(maps.Keys(of))
	var mutex sync.Mutex
	granted := map[string]bool{}
	workqueue.ParallelizeUntil(t.Context(), 16, len(rights), func(i int) {
		group, rest, _ := strings.Cut(rights[i], "/")
		path, verb, _ := strings.Cut(rest, ":")
		resource, subresource, _ := strings.Cut(path, "/")
		attributes := &authorizationv1.ResourceAttributes{
			Group: group, Resource: resource, Subresource: subresource, Verb: verb, Name: name,
		}
		if of[rights[i]] {
			attributes.Namespace = namespace
		}
		review, err := plane.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: attributes},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Errorf("%s: %v", rights[i], err)
			return
		}
		if review.Status.Allowed {
			mutex.Lock()
			granted[rights[i]] = true
			mutex.Unlock()
		}
	})
	return granted
}

// without returns the rights that others do not have, in order.
func without(rights, others map[string]bool) []string {
	rest := []string{}
	for right := range rights {
		if !others[right] {
			rest = append(rest, right)
		}
	}
	slices.Sort(rest)
	return rest
}

// grant is what a service account of the chart may do.
type grant struct {
	chart, account string
	// base is a user whose rights the account has too.
	base string
	// everywhere are its rights in all namespaces. In that of the release it has inRelease too, and own for the objects with its name.
	everywhere, inRelease, own []string
}

func joined(parts ...[]string) []string {
	all := slices.Concat(parts...)
	slices.Sort(all)
	return all
}

// grants are the rights that programs use: see the tests of each program. The base of most is an account without a role.
func grants() []grant {
	events := []string{"events.k8s.io/events:create", "events.k8s.io/events:patch"}
	nodes := []string{"/nodes:list", "/nodes:watch"}
	lease := []string{"coordination.k8s.io/leases:create"}
	ownLease := []string{"coordination.k8s.io/leases:get", "coordination.k8s.io/leases:update"}
	observes := joined(nodes, events, []string{
		"/pods:list", "/pods:watch", "policy/poddisruptionbudgets:list", "policy/poddisruptionbudgets:watch",
	})
	const nobody = "system:serviceaccount:" + release + ":nobody"
	return []grant{
		{chart: "default", account: "leeward-agent", base: nobody},
		{chart: "default", account: "leeward-controller", base: nobody},
		{chart: "default", account: "leeward-sync", base: nobody, everywhere: joined(nodes, events), inRelease: lease, own: ownLease},
		{chart: "default", account: "leeward-evictor", base: nobody, everywhere: observes, inRelease: lease, own: ownLease},
		{
			chart: "options", account: "leeward-evictor", base: nobody, everywhere: joined(observes, []string{"/pods/eviction:create"}),
			inRelease: joined(lease, []string{"/configmaps:create"}), own: joined(ownLease, []string{"/configmaps:get", "/configmaps:update"}),
		},
		{
			chart: "default", account: "leeward-scheduler", base: "system:kube-scheduler", inRelease: lease, own: ownLease,
			everywhere: []string{"leeward.dev/trafficmatrices/status:patch", "leeward.dev/trafficmatrices:list", "leeward.dev/trafficmatrices:watch"},
		},
	}
}

func TestEachServiceAccountMayDoWhatItsProgramDoesAndNothingElse(t *testing.T) {
	known := map[string]bool{}
	bases := map[string]map[string]bool{}
	for _, of := range grants() {
		t.Run(of.account+" of "+of.chart, func(t *testing.T) {
			install(t, of.chart)
			if len(known) == 0 {
				known = everyRight(t)
			}
			for _, objects := range []struct {
				namespace, name string
				expected        []string
			}{
				{metav1.NamespaceDefault, of.account, of.everywhere},
				{release, "", joined(of.everywhere, of.inRelease)},
				{release, of.account, joined(of.everywhere, of.inRelease, of.own)},
			} {
				base := bases[of.base+objects.namespace]
				if base == nil {
					base = allowed(t, known, of.base, objects.namespace, "")
					bases[of.base+objects.namespace] = base
				}
				granted := allowed(t, known, "system:serviceaccount:"+release+":"+of.account, objects.namespace, objects.name)
				// The account may share a right with its base.
				expected := slices.DeleteFunc(slices.Clone(objects.expected), func(right string) bool { return base[right] })
				if got := without(granted, base); !slices.Equal(got, expected) {
					t.Errorf("in %s, objects named %q:\ngranted:  %v\nexpected: %v", objects.namespace, objects.name, got, expected)
				}
				if lacks := without(base, granted); len(lacks) > 0 {
					t.Errorf("in %s: it lacks rights of %s: %v", objects.namespace, of.base, lacks)
				}
			}
		})
	}
}
