package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
)

// grant is the set of rights of a service account of the chart.
type grant struct {
	chart, account string
	// base is a user whose rights the account has too.
	base string
	// everywhere are its rights in all namespaces, as group/resource:verb. In that of the release it has inRelease too, and own for the
	// objects with its name.
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

// user returns the name of a service account of the chart as a user.
func user(account string) string { return "system:serviceaccount:" + release + ":" + account }

// groupsOf returns the groups that the API server gives a user.
func groupsOf(user string) []string {
	groups := []string{"system:authenticated"}
	if strings.HasPrefix(user, "system:serviceaccount:") {
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+release)
	}
	return groups
}

// granted returns the rights that the API server grants a user in a namespace, as group/resource:verb, and with the names of objects
// if the right holds for those alone.
func granted(t *testing.T, user, namespace string) map[string]bool {
	t.Helper()
	config := rest.CopyConfig(plane.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groupsOf(user)}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if review.Status.Incomplete {
		t.Fatalf("%s: the API server does not know all rights: %s", user, review.Status.EvaluationError)
	}
	rights := map[string]bool{}
	for _, rule := range review.Status.ResourceRules {
		names := ""
		if len(rule.ResourceNames) > 0 {
			names = " of " + strings.Join(rule.ResourceNames, ", ")
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights[fmt.Sprintf("%s/%s:%s%s", group, resource, verb, names)] = true
				}
			}
		}
	}
	return rights
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

func TestEachServiceAccountMayDoWhatItsProgramDoesAndNothingElse(t *testing.T) {
	for _, of := range grants() {
		t.Run(of.account+" of "+of.chart, func(t *testing.T) {
			install(t, of.chart)
			var own []string
			for _, right := range of.own {
				own = append(own, right+" of "+of.account)
			}
			for namespace, expected := range map[string][]string{
				metav1.NamespaceDefault: of.everywhere, metav1.NamespaceSystem: of.everywhere,
				release: joined(of.everywhere, of.inRelease, own),
			} {
				if namespace == metav1.NamespaceSystem && of.account == "leeward-scheduler" {
					// The next test has the rights of schedulers there.
					continue
				}
				rights, base := granted(t, user(of.account), namespace), granted(t, of.base, namespace)
				// The account may share a right with its base.
				expected := slices.DeleteFunc(slices.Clone(expected), func(right string) bool { return base[right] })
				slices.Sort(expected)
				if got := without(rights, base); !slices.Equal(got, expected) {
					t.Errorf("in %s:\ngranted:  %v\nexpected: %v", namespace, got, expected)
				}
				if lacks := without(base, rights); len(lacks) > 0 {
					t.Errorf("in %s: it lacks rights of %s: %v", namespace, of.base, lacks)
				}
			}
		})
	}
}

// kube-scheduler has further rights in the namespace of the system, and Leeward's needs but one of them.
func TestTheSchedulerReadsOnlyHowItsClientsAreAuthenticatedInTheNamespaceOfTheSystem(t *testing.T) {
	install(t, "default")
	rights := granted(t, user("leeward-scheduler"), metav1.NamespaceSystem)
	elsewhere := granted(t, user("leeward-scheduler"), metav1.NamespaceDefault)
	var expected []string
	for _, verb := range []string{"get", "list", "watch"} {
		expected = append(expected, "/configmaps:"+verb+" of extension-apiserver-authentication")
	}
	if got := without(rights, elsewhere); !slices.Equal(got, expected) {
		t.Errorf("%v", got)
	}
}

// may asks the API server whether a user has a right.
func may(t *testing.T, user string, attributes authorizationv1.ResourceAttributes) bool {
	t.Helper()
	review, err := plane.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groupsOf(user), ResourceAttributes: &attributes},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

func TestNoServiceAccountMayReadSecretsOrRaiseItsRights(t *testing.T) {
	forbidden := []authorizationv1.ResourceAttributes{
		{Verb: "*", Group: "*", Resource: "*"},
		{Verb: "get", Resource: "secrets", Namespace: release, Name: "leeward-tokens"},
		{Verb: "list", Resource: "secrets"},
		{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: release},
		{Verb: "impersonate", Resource: "users"},
		{Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "roles", Namespace: release},
		{Verb: "update", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "create", Resource: "pods", Namespace: release},
		{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: metav1.NamespaceDefault},
		{Verb: "update", Group: "apps", Resource: "deployments", Namespace: release},
		{Verb: "update", Resource: "nodes"},
		{Verb: "get", Resource: "nodes", Subresource: "proxy"},
		{Verb: "delete", Group: "policy", Resource: "poddisruptionbudgets", Namespace: metav1.NamespaceDefault},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: release, Name: "another"},
		{Verb: "update", Resource: "configmaps", Namespace: release, Name: "another"},
		{Verb: "update", Resource: "configmaps", Namespace: metav1.NamespaceDefault, Name: "leeward-evictor"},
		{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
	}
	evicts := authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "eviction", Namespace: metav1.NamespaceDefault}
	for _, of := range grants() {
		t.Run(of.account+" of "+of.chart, func(t *testing.T) {
			install(t, of.chart)
			for _, attributes := range forbidden {
				if may(t, user(of.account), attributes) {
					t.Errorf("it may %+v", attributes)
				}
			}
			// Only the evictor evicts pods, and only in its mode `evict`.
			if isEvictor := of.account == "leeward-evictor" && of.chart == "options"; may(t, user(of.account), evicts) != isEvictor {
				t.Errorf("it may evict pods: %v", !isEvictor)
			}
		})
	}
}

// startAggregation runs the controller of each cluster that adds the rules of labeled roles to the roles view, edit and admin.
func startAggregation(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	shared := informers.NewSharedInformerFactory(plane.Client, 0)
	controller := clusterroleaggregation.NewClusterRoleAggregation(shared.Rbac().V1().ClusterRoles(), plane.Client.RbacV1())
	shared.Start(ctx.Done())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(ctx, 1)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		shared.Shutdown()
	})
}

// bind gives a user a role of the cluster in a namespace until the test ends.
func bind(t *testing.T, user, role, namespace string) {
	t.Helper()
	bindings := plane.Client.RbacV1().RoleBindings(namespace)
	_, err := bindings.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bindings.Delete(context.Background(), user, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func TestUsersWhoMayEditANamespaceMayHaveTrafficMatricesThere(t *testing.T) {
	install(t, "default")
	startAggregation(t)
	addNamespace(t, "shop", nil)
	bind(t, "developer", "edit", "shop")
	bind(t, "visitor", "view", "shop")
	right := func(verb, namespace string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Verb: verb, Group: "leeward.dev", Resource: "trafficmatrices", Namespace: namespace}
	}
	eventually(t, "the roles do not get the rights of the chart", func() bool {
		return may(t, "developer", right("create", "shop")) && may(t, "visitor", right("list", "shop"))
	})
	for _, forbidden := range []struct{ user, verb, namespace string }{
		{"visitor", "create", "shop"}, {"developer", "create", metav1.NamespaceDefault}, {"visitor", "list", metav1.NamespaceDefault},
	} {
		if may(t, forbidden.user, right(forbidden.verb, forbidden.namespace)) {
			t.Errorf("%+v", forbidden)
		}
	}
}

// The chart has the roles of `kubectl leeward`, and binds them to nobody.
func TestAReaderMayDoWhatTheKubectlPluginDoes(t *testing.T) {
	install(t, "default")
	bind(t, "reader", release+"-leeward-reader", release)
	// The authorizer learns of roles and bindings by watching them.
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "list", Resource: "pods", Namespace: release},
		{Verb: "get", Resource: "pods", Namespace: release},
		{Verb: "list", Group: "policy", Resource: "poddisruptionbudgets", Namespace: release},
		{Verb: "list", Group: "events.k8s.io", Resource: "events", Namespace: release},
		{Verb: "list", Group: "leeward.dev", Resource: "trafficmatrices", Namespace: release},
	} {
		eventually(t, "a reader may not "+right.Verb+" "+right.Resource, func() bool { return may(t, "reader", right) })
	}
	for _, right := range []authorizationv1.ResourceAttributes{
		{Verb: "delete", Resource: "pods", Namespace: release},
		{Verb: "get", Resource: "secrets", Namespace: release, Name: "leeward-tokens"},
		{Verb: "patch", Group: "leeward.dev", Resource: "trafficmatrices", Namespace: release},
	} {
		if may(t, "reader", right) {
			t.Errorf("%+v", right)
		}
	}
}
