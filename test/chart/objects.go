package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Meta is the metadata of an object.
type Meta struct {
	Name, Namespace     string
	Labels, Annotations map[string]string
}

// Object is an object of a rendering.
type Object struct {
	APIVersion, Kind string
	Metadata         Meta
	Data             map[string]string
	Spec             json.RawMessage
}

// Objects are the objects of a rendering by kind and name: StatefulSet/sequins.
type Objects map[string]Object

// Parse reads a rendering. Every document has a kind and a name, and none is there twice.
func Parse(text string) (Objects, error) {
	all := Objects{}
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var doc any
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		object, err := json.Marshal(doc)
		if err != nil {
			return nil, err
		}
		var o Object
		if err := json.Unmarshal(object, &o); err != nil {
			return nil, err
		}
		key := o.Kind + "/" + o.Metadata.Name
		if _, twice := all[key]; twice || o.Kind == "" || o.Metadata.Name == "" {
			return nil, fmt.Errorf("the object %q of a rendering has no kind or name, or is there twice", key)
		}
		all[key] = o
	}
}

// Of returns the objects of a kind, in the order of their names.
func (all Objects) Of(kind string) (found []Object) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if all[key].Kind == kind {
			found = append(found, all[key])
		}
	}
	return found
}

// StatefulSet is the spec of one.
type StatefulSet struct {
	Replicas, MinReadySeconds        int
	ServiceName, PodManagementPolicy string
	Selector                         struct{ MatchLabels map[string]string }
	UpdateStrategy                   struct{ Type string }
	Template                         struct {
		Metadata Meta
		Spec     Pod
	}
	PersistentVolumeClaimRetentionPolicy struct{ WhenDeleted, WhenScaled string }
	VolumeClaimTemplates                 []struct {
		Metadata Meta
		Spec     json.RawMessage
	}
}

// Pod is the spec of a pod: all fields that the chart uses. Raw ones are for the scheduler and the registry.
type Pod struct {
	ServiceAccountName                               string
	AutomountServiceAccountToken, EnableServiceLinks bool
	TerminationGracePeriodSeconds                    int
	SecurityContext                                  struct {
		RunAsNonRoot                   bool
		RunAsUser, RunAsGroup, FSGroup int
		FSGroupChangePolicy            string
		SeccompProfile                 struct{ Type string }
	}
	Containers []Container
	Volumes    []Volume

	Affinity, NodeSelector, Tolerations, TopologySpreadConstraints, PriorityClassName, ImagePullSecrets json.RawMessage
}

// Container is a container of a pod.
type Container struct {
	Name, Image, ImagePullPolicy, WorkingDir    string
	Args                                        []string
	Env                                         []Env
	Ports                                       []Port
	StartupProbe, LivenessProbe, ReadinessProbe Probe
	Resources                                   struct{ Requests, Limits struct{ CPU, Memory any } }
	SecurityContext                             struct {
		AllowPrivilegeEscalation, ReadOnlyRootFilesystem bool
		Capabilities                                     struct{ Drop []string }
	}
	VolumeMounts []Mount
}

// Env is a variable of the environment.
type Env struct {
	Name, Value string
	ValueFrom   struct {
		FieldRef     struct{ FieldPath string }
		SecretKeyRef struct{ Name, Key string }
	}
}

// Port is a port of a container.
type Port struct {
	Name          string
	ContainerPort int
}

// Probe is a probe by HTTP.
type Probe struct {
	HTTPGet                                         struct{ Path, Port, Scheme string }
	PeriodSeconds, TimeoutSeconds, FailureThreshold int
}

// Mount is where a volume is in a container.
type Mount struct {
	Name, MountPath string
	ReadOnly        bool
}

// Volume is a volume of a pod.
type Volume struct {
	Name      string
	ConfigMap *Files
	EmptyDir  *struct{ Medium, SizeLimit string }
	Projected *struct {
		DefaultMode int
		Sources     []struct {
			Secret, ConfigMap *Files
		}
	}
	NFS      *struct{ Server, Path string }
	HostPath *struct{ Path string }
}

// Files are the files of a ConfigMap or Secret: all, or some.
type Files struct {
	Name  string
	Items []struct{ Key, Path string }
}

// StatefulSet returns the only StatefulSet of a rendering. Fields of it that the type lacks are an error, because what reads it
// would not do what they say.
func (all Objects) StatefulSet() (Meta, StatefulSet, error) {
	var s StatefulSet
	found := all.Of("StatefulSet")
	if len(found) != 1 {
		return Meta{}, s, fmt.Errorf("%d StatefulSets", len(found))
	}
	d := json.NewDecoder(bytes.NewReader(found[0].Spec))
	d.DisallowUnknownFields()
	err := d.Decode(&s)
	return found[0].Metadata, s, err
}
