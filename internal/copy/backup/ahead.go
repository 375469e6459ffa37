package backup

import (
	"runtime"
	"sync"
)

const (
	// workersMost is how many documents are copied or verified at the same time.
	workersMost = 2
	// fewDocuments is the number of documents below which one goroutine does all of it.
	fewDocuments = 256
	// aheadMost is how many results wait for those before them.
	aheadMost = 64
)

// workersFor returns how many workers copy or verify a number of documents.
func workersFor(n int64) int {
	if n < fewDocuments {
		return 1
	}
	return min(workersMost, runtime.GOMAXPROCS(0))
}

// ahead lets workers do something with each of many values, and takes the results in the order of the values.
type ahead[K, V any] struct {
	work    func(K) (V, error)
	take    func(K, V, error) error
	jobs    chan *job[K, V] // nil: there are no workers
	pending []*job[K, V]
	ended   sync.WaitGroup
}

type job[K, V any] struct {
	key   K
	value V
	err   error
	done  chan struct{}
}

// newAhead starts the workers, which close ends. The caller of add, finish and close also calls take.
func newAhead[K, V any](workers int, work func(K) (V, error), take func(K, V, error) error) *ahead[K, V] {
	a := &ahead[K, V]{work: work, take: take}
	if workers <= 1 {
		return a
	}
	a.jobs = make(chan *job[K, V], aheadMost)
	for range workers {
		a.ended.Go(func() {
			for j := range a.jobs {
				j.value, j.err = a.work(j.key)
				close(j.done)
			}
		})
	}
	return a
}

// add gives a value to the workers. It may take earlier results, and returns the first error of that.
func (a *ahead[K, V]) add(key K) error {
	if a.jobs == nil {
		v, err := a.work(key)
		return a.take(key, v, err)
	}
	if len(a.pending) == aheadMost {
		if err := a.takeFirst(); err != nil {
			return err
		}
	}
	j := &job[K, V]{key: key, done: make(chan struct{})}
	a.pending = append(a.pending, j)
	a.jobs <- j
	return nil
}

func (a *ahead[K, V]) takeFirst() error {
	j := a.pending[0]
	a.pending = a.pending[1:]
	<-j.done
	return a.take(j.key, j.value, j.err)
}

// finish takes all results.
func (a *ahead[K, V]) finish() error {
	for len(a.pending) > 0 {
		if err := a.takeFirst(); err != nil {
			return err
		}
	}
	return nil
}

// close ends the workers, after an error too.
func (a *ahead[K, V]) close() {
	if a.jobs == nil {
		return
	}
	for len(a.jobs) > 0 { // what no worker has begun
		select {
		case <-a.jobs:
		default:
		}
	}
	close(a.jobs)
	a.ended.Wait()
}
