// Package kubernetes runs what the Helm chart says: its pods as processes of the real program, with a real ZooKeeper.
//
// There is no kubelet here, so the tests do what one does, and no more than the manifests say. A container is a process in
// namespaces of its own (container_test.go): the root is what the image has, read-only; it runs as the user of the manifest
// without capabilities; its memory is limited by a control group. A pod (pod_test.go) has a network namespace and an address
// that changes when it is created anew, the files of ConfigMaps and Secrets, which are replaced as the kubelet replaces them,
// the variables of the downward API, init containers, and probes with their periods and thresholds. A cluster
// (cluster_test.go) has the names of the pods in a DNS server, services that pass connections on to ready pods, and the order
// in which a StatefulSet creates, updates and removes pods. What is not there: seccomp, and the scheduler.
//
// It needs root. TestMain starts the tests in a network of their own; see package netns.
package kubernetes
