package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/openfaas/faas-provider/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	watchdogPort = 8080
	// Labels and annotations of OpenFaaS.
	nameLabel    = "faas_function"
	minLabel     = "com.openfaas.scale.min"
	readyPath    = "com.openfaas.ready.http.path"
	defaultReady = "/_/health"
	deployedAs   = "framestorm.function" // what the caller asked for, to be told again
	probesEveryS = 1
	// Under load a pod answers late, and is not dead: one that is refuses at once.
	probeTimeoutS = 5
	minimumOfPods = 1
	temporary     = "tmp"
)

// checkNamespace refuses any namespace but the one there is.
func checkNamespace(name string) error {
	if name != "" && name != namespace {
		return fmt.Errorf("namespace %q does not exist; there is %q", name, namespace)
	}
	return nil
}

// newDeployment returns the Deployment of a function.
func newDeployment(d types.FunctionDeployment) (*appsv1.Deployment, error) {
	if err := checkNamespace(d.Namespace); err != nil {
		return nil, err
	}
	if len(d.Secrets) > 0 || len(d.Constraints) > 0 {
		return nil, fmt.Errorf("function %s has secrets or constraints, which this provider has not", d.Service)
	}
	replicas := int32(minimumOfPods)
	if text, ok := value(d.Labels, minLabel); ok {
		number, err := strconv.ParseInt(text, 10, 32)
		if err != nil || number < 0 {
			return nil, fmt.Errorf("label %s=%s of function %s: a whole number was expected", minLabel, text, d.Service)
		}
		replicas = int32(number)
	}
	resources, err := newResources(d)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	path, ok := value(d.Annotations, readyPath)
	if !ok {
		path = defaultReady
	}
	labels := map[string]string{nameLabel: d.Service}
	ready := &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(watchdogPort)}},
		PeriodSeconds: probesEveryS, TimeoutSeconds: probeTimeoutS,
	}
	container := corev1.Container{
		Name: d.Service, Image: d.Image, Env: environment(d), Resources: resources,
		Ports:           []corev1.ContainerPort{{ContainerPort: watchdogPort}},
		ReadinessProbe:  ready,
		SecurityContext: &corev1.SecurityContext{ReadOnlyRootFilesystem: &d.ReadOnlyRootFilesystem},
	}
	var volumes []corev1.Volume
	if d.ReadOnlyRootFilesystem {
		// What is left to write to, as with OpenFaaS's own provider.
		empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		volumes = []corev1.Volume{{Name: temporary, VolumeSource: empty}}
		container.VolumeMounts = []corev1.VolumeMount{{Name: temporary, MountPath: "/tmp"}}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Service, Namespace: namespace, Labels: labels, Annotations: map[string]string{deployedAs: string(text)},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{container}, Volumes: volumes},
			},
		},
	}, nil
}

func newService(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{nameLabel: name},
			Ports:    []corev1.ServicePort{{Port: watchdogPort, TargetPort: intstr.FromInt32(watchdogPort)}},
		},
	}
}

// written returns what a function was deployed as.
func written(d *appsv1.Deployment) types.FunctionDeployment {
	f := types.FunctionDeployment{Service: d.Name}
	// Somebody else may have made the Deployment: then its name is all that is known.
	_ = json.Unmarshal([]byte(d.Annotations[deployedAs]), &f)
	return f
}

func environment(d types.FunctionDeployment) []corev1.EnvVar {
	values := maps.Clone(d.EnvVars)
	if d.EnvProcess != "" {
		if values == nil {
			values = map[string]string{}
		}
		values["fprocess"] = d.EnvProcess
	}
	var list []corev1.EnvVar
	// In one order: another one would be another pod.
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, corev1.EnvVar{Name: name, Value: values[name]})
	}
	return list
}

func newResources(d types.FunctionDeployment) (made corev1.ResourceRequirements, err error) {
	if made.Limits, err = resourceList(d.Service, "limits", d.Limits); err != nil {
		return made, err
	}
	made.Requests, err = resourceList(d.Service, "requests", d.Requests)
	return made, err
}

func resourceList(function, what string, given *types.FunctionResources) (corev1.ResourceList, error) {
	if given == nil {
		return nil, nil
	}
	list := corev1.ResourceList{}
	for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: given.CPU, corev1.ResourceMemory: given.Memory} {
		if text == "" {
			continue
		}
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s of function %s: %s=%q: %w", what, function, name, text, err)
		}
		list[name] = quantity
	}
	return list, nil
}

func value(of *map[string]string, name string) (string, bool) {
	if of == nil {
		return "", false
	}
	text, ok := (*of)[name]
	return text, ok
}
