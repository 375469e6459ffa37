package backup

import (
	"runtime"
	"sync"
)

const (
	// workersMost is the maximum number of documents that are copied or verified at the same time.
	workersMost = 2
	// fewDocuments is the number of documents below which a single goroutine copies or verifies all of them.
	fewDocuments = 256
	// aheadMost is the maximum number of values that were added and whose results were not taken yet.
	aheadMost = 64
	// aheadBytes is a limit: while the results that were not taken yet have more bytes than this, the workers begin no
	// further values.
	aheadBytes = 32 << 20
)

// workersFor returns the number of workers that copy or verify n documents.
func workersFor(n int64) int {
	if n < fewDocuments {
		return 1
	}
	return min(workersMost, runtime.GOMAXPROCS(0))
}

// ahead lets workers process many values at the same time, and passes on the results in the order of the values.
type ahead[K, V any] struct {
	work    func(K) (V, error)
	take    func(K, V, error) error
	size    func(V) int64
	jobs    chan *job[K, V] // channel of values for the workers; nil: there are no workers
	pending []*job[K, V]
	added   int // number of values that were added
	ended   sync.WaitGroup

	mu     sync.Mutex
	change sync.Cond // signals a change of the fields that follow
	held   int64     // bytes of the results that are not taken yet
	taken  int       // number of results that were taken
	closed bool
}

type job[K, V any] struct {
	number int
	key    K
	value  V
	err    error
	done   chan struct{}
}

// newAhead starts the workers, each of which runs until close is called. The workers call work. take is called by the
// goroutine that calls add and finish. size returns the number of bytes of a result: the results that are not taken yet
// have little more than aheadBytes in total. With at most one worker newAhead starts none: add then calls work and
// take.
func newAhead[K, V any](workers int, size func(V) int64, work func(K) (V, error),
	take func(K, V, error) error) *ahead[K, V] {
	a := &ahead[K, V]{work: work, take: take, size: size}
	a.change.L = &a.mu
	if workers <= 1 {
		return a
	}
	a.jobs = make(chan *job[K, V], aheadMost)
	for range workers {
		a.ended.Go(func() {
			for j := range a.jobs {
				if a.mayBegin(j.number) {
					j.value, j.err = a.work(j.key)
					a.hold(a.size(j.value))
				}
				close(j.done)
			}
		})
	}
	return a
}

// mayBegin blocks until there is room for another result, and returns true; after close it returns false. The value
// whose result is taken next never waits: otherwise it could wait for later results, which are taken after it.
func (a *ahead[K, V]) mayBegin(number int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.held > aheadBytes && number != a.taken && !a.closed {
		a.change.Wait()
	}
	return !a.closed
}

func (a *ahead[K, V]) hold(n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held += n
}

// add passes a value to the workers. If aheadMost results are pending, add first takes the earliest one, and returns
// the error of taking it.
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
	j := &job[K, V]{number: a.added, key: key, done: make(chan struct{})}
	a.added++
	a.pending = append(a.pending, j)
	a.jobs <- j
	return nil
}

func (a *ahead[K, V]) takeFirst() error {
	j := a.pending[0]
	a.pending[0] = nil // the array is used on, and would keep the result
	a.pending = a.pending[1:]
	<-j.done
	err := a.take(j.key, j.value, j.err)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held -= a.size(j.value)
	a.taken++
	a.change.Broadcast()
	return err
}

// finish takes the results that are pending, up to the first error.
func (a *ahead[K, V]) finish() error {
	for len(a.pending) > 0 {
		if err := a.takeFirst(); err != nil {
			return err
		}
	}
	return nil
}

// close ends the workers and drops the values that no worker has begun. The caller must call close even after an error.
func (a *ahead[K, V]) close() {
	if a.jobs == nil {
		return
	}
	a.mu.Lock()
	a.closed = true
	a.change.Broadcast()
	a.mu.Unlock()
	for len(a.jobs) > 0 { // what no worker has begun
		select {
		case <-a.jobs:
		default:
		}
	}
	close(a.jobs)
	a.ended.Wait()
}
