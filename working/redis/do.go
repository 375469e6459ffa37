package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/working"
)

func (h *Home) do(ctx context.Context, r *working.Request) (working.Result, error) {
	res, err := h.dispatch(ctx, r)
	if err != nil {
		if refused := refusal(r, err); refused != nil {
			err = refused
		}
		return working.Result{}, err
	}
	return res, nil
}

func (h *Home) dispatch(ctx context.Context, r *working.Request) (res working.Result, err error) {
	s := h.scripts
	run := func(script *script, args ...any) reply {
		var v any
		v, err = h.run(ctx, script, r, args...)
		return reply{v, &err}
	}
	switch op := r.Op.(type) {
	case working.OpAttach:
		res.Created = run(s.attach).time()
	case working.OpGet:
		for i, it := range run(s.get, append([]any{flag(r.Limits.Evict && !op.Peek)}, strs(op.Names)...)...).list() {
			res.Items = append(res.Items, it.item(op.Names[i]))
		}
	case working.OpPut:
		return h.put(ctx, r, op.Items)
	case working.OpIncrement:
		return h.increment(ctx, r, op)
	case working.OpDelete:
		for i, was := range run(s.del, strs(op.Names)...).list() {
			res.Items = append(res.Items, working.Item{Name: op.Names[i], Found: was.int() == 1})
		}
	case working.OpExpire:
		res.N = run(s.expire, op.Name, op.TTL).int()
	case working.OpList:
		for _, it := range run(s.list, flag(op.Values)).list() {
			res.Items = append(res.Items, it.named())
		}
		sortItems(res.Items)
	case working.OpClear:
		res.N = run(s.clear).int()
	case working.OpAppend:
		v := run(s.append, op.Text, op.Keep)
		res.Notes, res.N = []working.Note{v.at(0).note()}, v.at(1).int()
	case working.OpNotes:
		return h.notes(ctx, r, op.Last)
	case working.OpClearNotes:
		res.N = run(s.clearNotes).int()
	case working.OpCheckpoint:
		res.Checkpoints = []working.CheckpointInfo{run(s.checkpoint, op.ID, op.Description, op.Keep).checkpoint()}
	case working.OpCheckpoints:
		for _, cp := range run(s.checkpoints).list() {
			res.Checkpoints = append(res.Checkpoints, cp.checkpoint())
		}
	case working.OpLoad:
		v := run(s.load, op.ID)
		for _, it := range v.at(0).list() {
			res.Items = append(res.Items, it.named())
		}
		sortItems(res.Items)
		for _, n := range v.at(1).list() {
			res.Notes = append(res.Notes, n.note())
		}
		if op.ID != "" {
			res.Checkpoints = []working.CheckpointInfo{v.at(2).checkpoint()}
		}
	case working.OpRestore:
		res.Checkpoints = []working.CheckpointInfo{run(s.restore, op.ID, op.Undo, op.Description, op.Keep).checkpoint()}
	case working.OpDiscard:
		res.N = run(s.discard, op.ID).int()
	case working.OpCount:
		v := run(s.count)
		res.Counts = working.Counts{Keys: int(v.at(0).int()), Expired: int(v.at(1).int()), Bytes: v.at(2).int(),
			Notes:       int(v.at(3).int()),
			Checkpoints: int(v.at(4).int()), Task: v.at(5).int() == 1, Created: v.at(6).time()}
	case working.OpDrop:
		res.N = run(s.drop).int()
	default:
		return res, fmt.Errorf("%w: working/redis: unknown operation %T", errs.ErrInvalid, r.Op)
	}
	return res, err
}

func (h *Home) put(ctx context.Context, r *working.Request, items []working.PutItem) (res working.Result, err error) {
	args := limits(r.Limits)
	for _, p := range items {
		args = append(args, p.Name, p.Value, p.TTL, p.IfNew, int(p.Cond), strconv.FormatUint(p.Version, 10))
	}
	v, err := h.run(ctx, h.scripts.put, r, args...)
	all := reply{v, &err}
	version, now := all.at(0).int(), all.at(1).time()
	for i, p := range items {
		it := working.Item{Name: p.Name, TTL: all.at(i + 2).int()}
		if it.Found = it.TTL != 0; it.Found {
			it.Version, it.Updated = uint64(version), now
		}
		res.Items = append(res.Items, it)
	}
	return res, err
}

func (h *Home) increment(ctx context.Context, r *working.Request,
	op working.OpIncrement) (res working.Result, err error) {
	v, err := h.run(ctx, h.scripts.put, r, append(limits(r.Limits), op.Name, "", op.TTL, op.IfNew, 3, op.By)...)
	res.N = reply{v, &err}.at(2).int()
	return res, err
}

// notes reads the newest entries of the scratchpad: at most last entries, or all if last is negative. It uses a plain
// Redis command instead of a script.
func (h *Home) notes(ctx context.Context, r *working.Request, last int) (res working.Result, err error) {
	if last == 0 {
		return res, nil
	}
	key := h.key(r.Scope, "p")
	for again := false; ; again = true {
		members, err := h.client.ZRange(ctx, key, int64(-max(last, 0)), -1).Result()
		if goredis.HasErrorPrefix(err, "WRONGTYPE") {
			return res, wrongType(key, err)
		}
		err = failure(describe(r), h.prefix, false, err)
		if err != nil && !again && ctx.Err() == nil {
			continue
		}
		res.Notes = make([]working.Note, 0, len(members))
		for _, m := range members {
			res.Notes = append(res.Notes, reply{m, &err}.note())
		}
		return res, err
	}
}

func limits(l working.Limits) []any { return []any{l.Keys, l.Bytes, flag(l.Evict)} }

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func strs(list []string) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

func sortItems(list []working.Item) {
	slices.SortFunc(list, func(a, b working.Item) int { return strings.Compare(a.Name, b.Name) })
}
