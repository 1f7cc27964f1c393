// One contestant of bench.informer: client-go's shared informer over typed objects, with two
// indexes by label and a work queue. It takes the arguments of bench/race.py and prints its JSON:
//
//	client-go KIND URL --count N --rounds R --last VERSION --index LABEL --index LABEL [--weigh]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// kind is what is raced with: where it is served, and an example of its type.
type kind struct {
	group   schema.GroupVersion
	root    string
	plural  string
	example kruntime.Object
}

var kinds = map[string]kind{
	"machines": {machineGroup, "/apis", "machines", &Machine{}},
	"nodes":    {corev1.SchemeGroupVersion, "/api", "nodes", &corev1.Node{}},
}

type times struct {
	Objects            int     `json:"objects"`
	Events             int     `json:"events"`
	Queued             int     `json:"queued"`
	ListCPUSeconds     float64 `json:"list_cpu_seconds"`
	ListWallSeconds    float64 `json:"list_wall_seconds"`
	EventsPerCPUSecond int     `json:"events_per_cpu_second"`
}

type weight struct {
	Objects        int `json:"objects"`
	BytesPerObject int `json:"bytes_per_object"`
}

// labels collects the values of a flag that may be repeated.
type labels []string

func (l *labels) String() string { return fmt.Sprint(*l) }

func (l *labels) Set(value string) error {
	*l = append(*l, value)
	return nil
}

const patience = 10 * time.Minute

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) < 2 {
		return fmt.Errorf("usage: client-go KIND URL --last VERSION --index LABEL ... [--weigh]")
	}
	name, url := arguments[0], arguments[1]
	raced, known := kinds[name]
	if !known {
		return fmt.Errorf("unknown kind %q", name)
	}
	flags := flag.NewFlagSet("client-go", flag.ContinueOnError)
	last := flags.String("last", "", "the version after which the race is over")
	weigh := flags.Bool("weigh", false, "count bytes instead of seconds")
	var indexed labels
	flags.Var(&indexed, "index", "a label to index by; may be repeated")
	if err := flags.Parse(arguments[2:]); err != nil {
		return err
	}
	client, err := newClient(url, raced)
	if err != nil {
		return err
	}
	before := liveBytes(*weigh)
	found := newRace(client, raced, indexed, *last)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go found.informer.Run(ctx.Done())
	select {
	case <-found.finished:
	case <-ctx.Done():
		return fmt.Errorf("no end after %s: %d events", patience, found.events)
	}
	if *weigh {
		return found.printWeight(before)
	}
	return json.NewEncoder(os.Stdout).Encode(found.times())
}

func newClient(url string, raced kind) (*rest.RESTClient, error) {
	scheme := kruntime.NewScheme()
	addMachines(scheme)
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return rest.RESTClientFor(&rest.Config{
		Host:    url,
		APIPath: raced.root,
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &raced.group,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	})
}

// liveBytes returns what is in use after a collection; 0 if nobody weighs.
func liveBytes(wanted bool) uint64 {
	if !wanted {
		return 0
	}
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
