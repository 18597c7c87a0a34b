package main

import (
	"context"
	"log"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"knative.dev/networking/pkg/apis/networking"
	"knative.dev/networking/pkg/apis/networking/v1alpha1"
	"knative.dev/networking/pkg/client/clientset/versioned"
	"knative.dev/networking/pkg/client/informers/externalversions"
	ingresslisters "knative.dev/networking/pkg/client/listers/networking/v1alpha1"
)

const (
	class = "framestorm.ingress.networking.knative.dev"
	// Under which pods of the cluster reach it.
	domain = "framestorm-ingress.knative-serving.svc.cluster.local"
	// Changes come in bursts, as the endpoints of a revision that scales.
	settle     = 20 * time.Millisecond
	retryAfter = time.Second
)

// controller keeps the proxy's table as Knative's ingresses and their endpoints say, and tells Knative so.
type controller struct {
	proxy     *proxy
	client    versioned.Interface
	ingresses ingresslisters.IngressLister
	services  listers.ServiceLister
	endpoints listers.EndpointsLister
	changed   chan struct{}
	turns     turns
}

// start watches the cluster; it returns when the first table is made.
func start(ctx context.Context, p *proxy, core kubernetes.Interface, client versioned.Interface) error {
	coreInformers := informers.NewSharedInformerFactory(core, 0)
	networkingInformers := externalversions.NewSharedInformerFactory(client, 0)
	v1, ingresses := coreInformers.Core().V1(), networkingInformers.Networking().V1alpha1().Ingresses()
	c := &controller{
		proxy: p, client: client, ingresses: ingresses.Lister(), services: v1.Services().Lister(),
		endpoints: v1.Endpoints().Lister(), changed: make(chan struct{}, 1), turns: turns{},
	}
	wake := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.wake() },
		UpdateFunc: func(any, any) { c.wake() },
		DeleteFunc: func(any) { c.wake() },
	}
	for _, informer := range []cache.SharedIndexInformer{
		ingresses.Informer(), v1.Services().Informer(), v1.Endpoints().Informer(),
	} {
		if _, err := informer.AddEventHandler(wake); err != nil {
			return err
		}
	}
	coreInformers.Start(ctx.Done())
	networkingInformers.Start(ctx.Done())
	coreInformers.WaitForCacheSync(ctx.Done())
	networkingInformers.WaitForCacheSync(ctx.Done())
	c.update(ctx)
	go c.follow(ctx)
	return nil
}

func (c *controller) wake() {
	select {
	case c.changed <- struct{}{}:
	default: // it is awake
	}
}

func (c *controller) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.changed:
			c.update(ctx)
			time.Sleep(settle)
		}
	}
}

// update makes the table anew, and then tells Knative of each ingress that requests of its hosts are served.
func (c *controller) update(ctx context.Context) {
	all, err := c.ingresses.List(labels.Everything())
	if err != nil {
		log.Printf("ingresses: %v", err)
		return
	}
	var own []*v1alpha1.Ingress
	for _, each := range all {
		if each.Annotations[networking.IngressClassAnnotationKey] == class && each.DeletionTimestamp == nil {
			own = append(own, each)
		}
	}
	made := newTable(own, c.ready, c.turns)
	c.proxy.table.Store(&made)
	for _, each := range own {
		if each.Status.ObservedGeneration == each.Generation && each.IsReady() {
			continue
		}
		if err := c.markReady(ctx, each.DeepCopy()); err != nil {
			log.Printf("status of %s/%s: %v", each.Namespace, each.Name, err)
			time.AfterFunc(retryAfter, c.wake)
		}
	}
}

func (c *controller) markReady(ctx context.Context, ingress *v1alpha1.Ingress) error {
	here := []v1alpha1.LoadBalancerIngressStatus{{DomainInternal: domain}}
	ingress.Status.InitializeConditions()
	ingress.Status.MarkNetworkConfigured()
	ingress.Status.MarkLoadBalancerReady(here, here)
	ingress.Status.ObservedGeneration = ingress.Generation
	ingresses := c.client.NetworkingV1alpha1().Ingresses(ingress.Namespace)
	_, err := ingresses.UpdateStatus(ctx, ingress, metav1.UpdateOptions{})
	return err
}

// ready returns the addresses behind a service that are ready.
func (c *controller) ready(backend v1alpha1.IngressBackend) []string {
	service, err := c.services.Services(backend.ServiceNamespace).Get(backend.ServiceName)
	if err != nil {
		return nil
	}
	port := servicePort(service, backend)
	if port == nil {
		return nil
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return []string{address(service.Spec.ExternalName, port.Port)}
	}
	endpoints, err := c.endpoints.Endpoints(backend.ServiceNamespace).Get(backend.ServiceName)
	if err != nil {
		return nil
	}
	var addresses []string
	for _, subset := range endpoints.Subsets {
		for _, each := range subset.Ports {
			if each.Name != port.Name {
				continue
			}
			for _, pod := range subset.Addresses {
				addresses = append(addresses, address(pod.IP, each.Port))
			}
		}
	}
	return addresses
}

func servicePort(service *corev1.Service, backend v1alpha1.IngressBackend) *corev1.ServicePort {
	for i, each := range service.Spec.Ports {
		if each.Name == backend.ServicePort.String() || int(each.Port) == backend.ServicePort.IntValue() {
			return &service.Spec.Ports[i]
		}
	}
	return nil
}

func address(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}
