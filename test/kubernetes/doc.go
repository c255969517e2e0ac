// Package kubernetes runs the pods of the Helm chart as processes.
package kubernetes
