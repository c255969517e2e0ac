package azure

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"sequins/source/objects"
)

// Location returns where the source of o is: abfss://container@account.dfs.core.windows.net/path for each form of a URL of the
// server of an account, and otherwise, as objects.Location, with the endpoint of the options, or of the connection string of the options or the
// environment. The schemes mean the same, and so do the hosts of the services dfs and blob.
func Location(o Options) (string, error) {
	p, err := parseURL(o)
	if err != nil {
		return "", fmt.Errorf("azure: %w", err)
	}
	found, err := p.find(&o)
	if err != nil {
		return "", fmt.Errorf("azure: %w", err)
	}
	endpoint := p.endpoint
	if found.connection != "" {
		if endpoint, err = connectionEndpoint(found, p.container); err != nil {
			return "", fmt.Errorf("azure: %w", err)
		}
	}
	endpoint = objects.CanonicalEndpoint(endpoint)
	if host, https := strings.CutPrefix(endpoint, "https://"); https && strings.Contains(host, ".blob.") && !strings.Contains(host, "/") {
		return objects.Location("abfss", p.container+"@"+strings.Replace(host, ".blob.", ".dfs.", 1), p.path, ""), nil
	}
	return objects.Location("abfss", p.container, p.path, endpoint), nil
}

// connectionEndpoint returns the endpoint of a connection string, without the SAS token.
func connectionEndpoint(found secrets, name string) (string, error) {
	client, err := container.NewClientFromConnectionString(found.connection, name, nil)
	if err != nil {
		return "", fmt.Errorf("credentials: %w", objects.Redact(err, found.hidden()...))
	}
	u, err := url.Parse(client.URL())
	if err != nil {
		return "", fmt.Errorf("credentials: %w", objects.Redact(err, found.hidden()...))
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/"+name), nil
}
