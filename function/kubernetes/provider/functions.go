package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/openfaas/faas-provider/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	kubeerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appstyped "k8s.io/client-go/kubernetes/typed/apps/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// functions are those of the namespace. What is asked on every request comes from what is watched: the API server
// would take 20 ms for it.
type functions struct {
	client      kubernetes.Interface
	deployments appslisters.DeploymentNamespaceLister
	endpoints   corelisters.EndpointsNamespaceLister
	turns       sync.Map // of each function, *atomic.Uint64
}

func newFunctions(ctx context.Context, client kubernetes.Interface) *functions {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	f := &functions{
		client:      client,
		deployments: factory.Apps().V1().Deployments().Lister().Deployments(namespace),
		endpoints:   factory.Core().V1().Endpoints().Lister().Endpoints(namespace),
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return f
}

func (f *functions) own() appstyped.DeploymentInterface {
	return f.client.AppsV1().Deployments(namespace)
}

func (f *functions) create(ctx context.Context, d types.FunctionDeployment) error {
	deployment, err := newDeployment(d)
	if err != nil {
		return err
	}
	if _, err := f.own().Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return err
	}
	return f.ensureService(ctx, d.Service)
}

// ensureService makes a function's Service where there is none.
func (f *functions) ensureService(ctx context.Context, name string) error {
	_, err := f.client.CoreV1().Services(namespace).Create(ctx, newService(name), metav1.CreateOptions{})
	if kubeerrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// update replaces what runs and leaves the number of replicas, which the gateway or a person has set.
func (f *functions) update(ctx context.Context, d types.FunctionDeployment) error {
	before, err := f.own().Get(ctx, d.Service, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if before.DeletionTimestamp != nil {
		// Without its finalizers it would be gone at once, and what is asked for now with it.
		why := errors.New("it is still being removed; deploy it again in a moment")
		return kubeerrors.NewConflict(appsv1.Resource("deployments"), d.Service, why)
	}
	deployment, err := newDeployment(d)
	if err != nil {
		return err
	}
	deployment.Spec.Replicas, deployment.Finalizers = before.Spec.Replicas, before.Finalizers
	if _, err := f.own().Update(ctx, deployment, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return f.ensureService(ctx, d.Service)
}

// delete removes the Deployment and the Service, also where only one of them was made.
func (f *functions) delete(ctx context.Context, request types.DeleteFunctionRequest) error {
	if err := checkNamespace(request.Namespace); err != nil {
		return err
	}
	// With the pods.
	foreground := metav1.DeletePropagationForeground
	name := request.FunctionName
	err := f.own().Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &foreground})
	if err != nil && !kubeerrors.IsNotFound(err) {
		return err
	}
	serviceErr := f.client.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if serviceErr != nil && !kubeerrors.IsNotFound(serviceErr) {
		return serviceErr
	}
	return err
}

func (f *functions) scale(ctx context.Context, name string, request types.ScaleServiceRequest) error {
	if err := checkNamespace(request.Namespace); err != nil {
		return err
	}
	if request.Replicas > math.MaxInt32 {
		return fmt.Errorf("%d replicas are more than the %d that a Deployment may have", request.Replicas, math.MaxInt32)
	}
	scale, err := f.own().GetScale(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = int32(request.Replicas)
	_, err = f.own().UpdateScale(ctx, name, scale, metav1.UpdateOptions{})
	return err
}

func (f *functions) all() ([]types.FunctionStatus, error) {
	deployments, err := f.deployments.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	all := []types.FunctionStatus{}
	for _, each := range deployments {
		all = append(all, statusOf(each))
	}
	return all, nil
}

func (f *functions) status(name string) (types.FunctionStatus, error) {
	deployment, err := f.deployments.Get(name)
	if err != nil {
		return types.FunctionStatus{}, err
	}
	return statusOf(deployment), nil
}

// Resolve returns the address of the pod whose turn it is: a service's own would keep a connection at one pod. The name may
// have the namespace behind a dot.
func (f *functions) Resolve(name string) (url.URL, error) {
	name = strings.TrimSuffix(name, "."+namespace)
	endpoints, err := f.endpoints.Get(name)
	if err != nil {
		return url.URL{}, fmt.Errorf("there is no function %s", name)
	}
	pods := addresses(endpoints)
	if len(pods) == 0 {
		return url.URL{}, fmt.Errorf("no replica of function %s is ready", name)
	}
	turn, _ := f.turns.LoadOrStore(name, &atomic.Uint64{})
	pod := pods[turn.(*atomic.Uint64).Add(1)%uint64(len(pods))]
	return url.URL{Scheme: "http", Host: pod}, nil
}

func addresses(endpoints *corev1.Endpoints) []string {
	var all []string
	for _, subset := range endpoints.Subsets {
		for _, port := range subset.Ports {
			for _, pod := range subset.Addresses {
				all = append(all, net.JoinHostPort(pod.IP, strconv.Itoa(int(port.Port))))
			}
		}
	}
	return all
}

func statusOf(d *appsv1.Deployment) types.FunctionStatus {
	f := written(d)
	return types.FunctionStatus{
		Name: f.Service, Image: f.Image, Namespace: namespace, EnvProcess: f.EnvProcess, EnvVars: f.EnvVars,
		Labels: f.Labels, Annotations: f.Annotations, Limits: f.Limits, Requests: f.Requests,
		ReadOnlyRootFilesystem: f.ReadOnlyRootFilesystem, CreatedAt: d.CreationTimestamp.Time,
		Replicas: uint64(*d.Spec.Replicas), AvailableReplicas: uint64(d.Status.AvailableReplicas),
	}
}
