package varve

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// limiter bounds the bytes of PutAsync that are under way.
type limiter struct{ sem *semaphore.Weighted }

const asyncBytes = 64 << 20

func (l *limiter) init() { l.sem = semaphore.NewWeighted(asyncBytes) }

func (l *limiter) acquire(n int64) {
	_ = l.sem.Acquire(context.Background(), min(n, asyncBytes)) // fails only with the ctx
}

func (l *limiter) release(n int64) { l.sem.Release(min(n, asyncBytes)) }
