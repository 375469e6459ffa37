package server

import (
	"context"
	"sync"
)

// request is a running request that has presented a valid token.
type request struct {
	token   *Token
	listens bool // the request lasts until its client ends it
}

// requests has all running requests with a valid token, each with the function that cancels the request.
type requests struct {
	mu sync.Mutex
	of map[*request]context.CancelFunc
}

func (l *requests) add(r *request, end context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of[r] = end
}

func (l *requests) remove(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, r)
}

// endUnless cancels the running requests for whose tokens valid returns false.
func (l *requests) endUnless(valid func(t *Token) bool) {
	l.end(func(r *request) bool { return !valid(r.token) })
}

func (l *requests) endListeners() { l.end(func(r *request) bool { return r.listens }) }

func (l *requests) endAll() { l.end(func(*request) bool { return true }) }

func (l *requests) end(which func(r *request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r, end := range l.of {
		if which(r) {
			end()
		}
	}
}
