package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sequins/config"
)

// zoneLabel is the label of a Kubernetes node that names its zone.
const zoneLabel = "topology.kubernetes.io/zone"

// kubernetesZoneCommand is for the init container of a pod: the image has no other program that could ask the API server.
func kubernetesZoneCommand() *cobra.Command {
	var z zoneReader
	cmd := &cobra.Command{
		Use: "kubernetes-zone FILE", Args: cobra.ExactArgs(1), Hidden: true,
		Short: "Write the zone of a Kubernetes node to a file",
		Long: `Write the zone of a Kubernetes node to a file, for zone_file of [sharding]: its label
topology.kubernetes.io/zone. It runs in an init container, with a service account
that may get nodes. A node without the label has an empty zone.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), apiTimeout)
			defer cancel()
			zone, err := z.zone(ctx)
			if err != nil {
				return fmt.Errorf("the zone of node %q: %w", z.node, err)
			}
			if zone == "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "sequins: node %s has no label %s: its zone is empty\n", z.node, zoneLabel) //nolint:errcheck // nobody reads it
			}
			return os.WriteFile(args[0], []byte(zone+"\n"), 0o644)
		},
	}
	cmd.Flags().StringVar(&z.node, "node", os.Getenv("NODE_NAME"), "`name` of the node")
	cmd.Flags().StringVar(&z.account, "service-account", "/var/run/secrets/kubernetes.io/serviceaccount", "`directory` with token and ca.crt")
	return cmd
}

const (
	// apiTimeout limits the request to the API server. If it fails, Kubernetes starts the init container again.
	apiTimeout = 30 * time.Second
	// maxNode limits the answer, in bytes.
	maxNode = 4 << 20
)

// zoneReader asks the API server of Kubernetes for a node. account is the directory of a service account.
type zoneReader struct{ node, account string }

// zone returns the zone of the node, "" if it has none.
func (z zoneReader) zone(ctx context.Context) (string, error) {
	if z.node == "" {
		return "", errors.New("NODE_NAME is not set in the environment")
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return "", errors.New("this is not a pod: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
	}
	token, err := os.ReadFile(filepath.Join(z.account, "token"))
	if err != nil {
		return "", fmt.Errorf("the service account's token: %w", err)
	}
	pool, err := readPool("the service account's ca.crt", filepath.Join(z.account, "ca.crt"))
	if err != nil {
		return "", err
	}
	at := url.URL{Scheme: "https", Host: net.JoinHostPort(host, port), Path: "/api/v1/nodes/" + z.node}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Accept", "application/json")
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	return zoneOf(resp)
}

// zoneOf returns the zone in an answer of the API server.
func zoneOf(resp *http.Response) (string, error) {
	doc, err := io.ReadAll(io.LimitReader(resp.Body, maxNode+1))
	switch {
	case err != nil:
		return "", err
	case len(doc) > maxNode:
		return "", fmt.Errorf("the answer has more than %d bytes", maxNode)
	case resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized:
		return "", fmt.Errorf("%s: the pod's service account needs a ClusterRole that may get nodes: %.300s", resp.Status, oneLine(doc))
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s: %.300s", resp.Status, oneLine(doc))
	}
	var node struct {
		Metadata struct{ Labels map[string]string }
	}
	if err := json.Unmarshal(doc, &node); err != nil {
		return "", fmt.Errorf("the answer is not a node: %w", err)
	}
	zone := node.Metadata.Labels[zoneLabel]
	if err := config.CheckZone(zone); err != nil {
		return "", fmt.Errorf("label %s %w", zoneLabel, err)
	}
	return zone, nil
}

func oneLine(doc []byte) string { return strings.Join(strings.Fields(string(doc)), " ") }
