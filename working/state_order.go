package working

import "container/heap"

// useList is a list of the user's items, the least recently used first.
type useList struct{ root item }

func (l *useList) init() { l.root.prev, l.root.next = &l.root, &l.root }

func (l *useList) touch(it *item) {
	l.remove(it)
	last := l.root.prev
	it.prev, it.next = last, &l.root
	last.next, l.root.prev = it, it
}

func (l *useList) remove(it *item) {
	if it.prev != nil {
		it.prev.next, it.next.prev = it.next, it.prev
		it.prev, it.next = nil, nil
	}
}

func (l *useList) all(yield func(*item) bool) {
	for it := l.root.next; it != &l.root; it = it.next {
		if !yield(it) {
			return
		}
	}
}

// expiryHeap is a heap of the items that expire. Its root is the item that expires first.
type expiryHeap []*item

func (h *expiryHeap) set(it *item) {
	switch {
	case it.deadline == 0:
		h.remove(it)
	case it.at < 0:
		heap.Push(h, it)
	default:
		heap.Fix(h, it.at)
	}
}

func (h *expiryHeap) remove(it *item) {
	if it.at >= 0 {
		heap.Remove(h, it.at)
	}
}

// over calls visit for each item that has expired at tick. Of the items that have not expired, it examines only those
// directly below an expired item in the heap.
func (h expiryHeap) over(tick int64, visit func(*item)) { h.overFrom(0, tick, visit) }

func (h expiryHeap) overFrom(i int, tick int64, visit func(*item)) {
	if i < len(h) && h[i].over(tick) {
		visit(h[i])
		h.overFrom(2*i+1, tick, visit)
		h.overFrom(2*i+2, tick, visit)
	}
}

// Len, Less and Swap are methods of heap.Interface, which container/heap calls.
func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].deadline < h[j].deadline }

func (h expiryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push appends the item x. Only container/heap calls it.
func (h *expiryHeap) Push(x any) {
	it := x.(*item)
	it.at = len(*h)
	*h = append(*h, it)
}

// Pop removes the last item of the slice and returns it. Only container/heap calls it.
func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	it := (*h)[last]
	(*h)[last] = nil
	*h, it.at = (*h)[:last], -1
	return it
}
