package main

import (
	"encoding/json"
	"math"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// race follows one informer from its list to the last event. Its counters belong to the one
// goroutine that calls the handler.
type race struct {
	informer cache.SharedIndexInformer
	queue    workqueue.TypedInterface[string]
	finished chan struct{}
	events   int

	last     string
	expected atomic.Int64 // objects in the list
	told     int64        // of those
	listDone chan struct{}
	mark     float64
	started  time.Time
	listCPU  float64
	listWall float64
	watchCPU float64
}

func newRace(client rest.Interface, raced kind, indexed []string, last string) *race {
	r := &race{
		queue:    workqueue.NewTyped[string](),
		finished: make(chan struct{}),
		listDone: make(chan struct{}),
		last:     last,
	}
	indexers := cache.Indexers{}
	for _, label := range indexed {
		indexers[label] = byLabel(label)
	}
	source := r.source(client, raced.plural)
	r.informer = cache.NewSharedIndexInformer(source, raced.example, 0, indexers)
	r.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    r.added,
		UpdateFunc: func(_, new any) { r.changed(new) },
		DeleteFunc: r.changed,
	})
	r.started, r.mark = time.Now(), cpuSeconds()
	return r
}

// source lists and watches as client-go does, but opens the watch only when the list has been
// told: else the costs of the two could not be told apart.
func (r *race) source(client rest.Interface, plural string) *cache.ListWatch {
	plain := cache.NewListWatchFromClient(client, plural, metav1.NamespaceAll, fields.Everything())
	return &cache.ListWatch{
		ListFunc: func(options metav1.ListOptions) (kruntime.Object, error) {
			page, err := plain.ListFunc(options)
			if err == nil {
				r.expected.Add(int64(meta.LenList(page)))
			}
			return page, err
		},
		WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
			<-r.listDone
			return plain.WatchFunc(options)
		},
	}
}

func (r *race) added(obj any, initial bool) {
	r.queue.Add(keyOf(obj))
	if !initial {
		r.count(obj)
		return
	}
	r.told++
	// Nothing is told before the last page is there.
	if r.told == r.expected.Load() {
		r.listed()
	}
}

func (r *race) listed() {
	now := cpuSeconds()
	r.listCPU, r.listWall = now-r.mark, time.Since(r.started).Seconds()
	r.mark = now
	close(r.listDone)
}

func (r *race) changed(obj any) {
	r.queue.Add(keyOf(obj))
	r.count(obj)
}

func (r *race) count(obj any) {
	r.events++
	found, err := meta.Accessor(obj)
	if err == nil && found.GetResourceVersion() == r.last {
		r.watchCPU = cpuSeconds() - r.mark
		close(r.finished)
	}
}

func (r *race) times() times {
	return times{
		Objects:            len(r.informer.GetIndexer().ListKeys()),
		Events:             r.events,
		Queued:             r.queue.Len(),
		ListCPUSeconds:     rounded(r.listCPU),
		ListWallSeconds:    rounded(r.listWall),
		EventsPerCPUSecond: int(math.Round(float64(r.events) / r.watchCPU)),
	}
}

// printWeight tells what the mirror takes: the keys in the queue are not its own.
func (r *race) printWeight(before uint64) error {
	r.queue = workqueue.NewTyped[string]()
	objects := len(r.informer.GetIndexer().ListKeys())
	taken := liveBytes(true) - before
	return json.NewEncoder(os.Stdout).Encode(weight{objects, int(taken) / max(objects, 1)})
}

func byLabel(label string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		found, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		if value, has := found.GetLabels()[label]; has {
			return []string{value}, nil
		}
		return nil, nil
	}
}

func keyOf(obj any) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		panic(err) // every object of the recording has a name
	}
	return key
}

// cpuSeconds returns what this process has used, of the user's and of the system's time: what
// Python's time.process_time returns.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return seconds(usage.Utime) + seconds(usage.Stime)
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

func rounded(value float64) float64 { return math.Round(value*1000) / 1000 }
