package helm

import (
	"fmt"
	"maps"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

// secretsOf are the Secrets of a cluster, for the function `lookup` of templates.
type secretsOf struct{ client dynamic.Interface }

// GetClientFor returns the client of Secrets, which templates look up, and an error for every other kind.
func (s secretsOf) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if apiVersion != "v1" || kind != "Secret" {
		return nil, false, fmt.Errorf("%s %s: no kind that the chart looks up", apiVersion, kind)
	}
	return s.client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")), true, nil
}

// contents returns the data of Secrets as the API server stores them.
func contents(secrets map[string]*corev1.Secret) map[string]map[string][]byte {
	result := map[string]map[string][]byte{}
	for name, secret := range secrets {
		result[name] = map[string][]byte{}
		maps.Copy(result[name], secret.Data)
		for key, text := range secret.StringData {
			result[name][key] = []byte(text)
		}
	}
	return result
}

func TestAnUpgradeKeepsTokensAndCertificates(t *testing.T) {
	first := of[*corev1.Secret](objects(t, ""))
	installed := contents(first)
	var stored []runtime.Object
	for name, secret := range first {
		secret = secret.DeepCopy()
		secret.Data, secret.StringData = installed[name], nil
		stored = append(stored, secret)
	}
	rendered, err := renderBeside(secretsOf{dynamicfake.NewSimpleDynamicClient(scheme.Scheme, stored...)}, "")
	if err != nil {
		t.Fatal(err)
	}
	upgraded := contents(of[*corev1.Secret](decode(t, rendered)))
	if len(installed) != 2 || !reflect.DeepEqual(upgraded, installed) {
		t.Errorf("the Secrets of an upgrade differ from the %d of the installation", len(installed))
	}
	if again := contents(of[*corev1.Secret](objects(t, ""))); reflect.DeepEqual(again, installed) {
		t.Error("two installations have the same tokens")
	}
}
