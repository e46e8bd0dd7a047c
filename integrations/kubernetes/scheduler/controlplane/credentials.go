package controlplane

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ServiceAccount returns the configuration of clients with a token of a service account, as its pods have one.
func (c *ControlPlane) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	token, err := c.Client.CoreV1().ServiceAccounts(namespace).CreateToken(
		ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.Config)
	config.BearerToken = token.Status.Token
	return config, nil
}

// WriteCredentials writes the configuration of a client to a file, as the flag --kubeconfig of programs reads it.
func WriteCredentials(path string, config *rest.Config) error {
	const name = "controlplane"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
}
