package main

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
)

// splitVersion splits an argument of the form ID@LSN, an id and a version; ok is false if arg does not have
// that form.
func splitVersion(arg string) (id string, lsn uint64, ok bool) {
	at := strings.LastIndexByte(arg, '@')
	if at < 1 {
		return arg, 0, false
	}
	lsn, err := strconv.ParseUint(arg[at+1:], 10, 64)
	if err != nil || arg[at+1] == '+' {
		return arg, 0, false
	}
	return arg[:at], lsn, true
}

// versions gives access to the versions of memories, or of assemblies.
type versions interface {
	GetRaw(ctx context.Context, id string) ([]byte, error)
	GetAt(ctx context.Context, id string, lsn uint64) (varve.Version, error)
	History(ctx context.Context, id string) iter.Seq2[varve.Version, error]
}

func versionsOf(st *varve.Store, assemblies bool) versions {
	if assemblies {
		return st.Assemblies()
	}
	return memories{st}
}

// memories implements versions for the memories of a store.
type memories struct{ *varve.Store }

func (m memories) GetRaw(ctx context.Context, id string) ([]byte, error) {
	return m.Admin().GetRaw(ctx, id)
}

// versionOf returns the version that an argument of the form ID@LSN names. The bool is false if the argument is an id
// without a version. An id may itself contain an @: if a document with the id arg exists, arg is taken as an id.
func versionOf(ctx context.Context, vs versions, arg string) (varve.Version, bool, error) {
	id, lsn, ok := splitVersion(arg)
	if !ok {
		return varve.Version{}, false, nil
	}
	switch _, err := vs.GetRaw(ctx, arg); {
	case err == nil:
		return varve.Version{}, false, nil
	case !errors.Is(err, varve.ErrNotFound):
		return varve.Version{}, true, err
	}
	v, err := vs.GetAt(ctx, id, lsn)
	switch {
	case err != nil || !v.Deleted:
	case v.Kind == "assembly":
		_, err = v.DecodeAssembly()
	default:
		_, err = v.Decode()
	}
	return v, true, err
}

// named returns the version that an argument of the form ID@LSN names. For an ID without @LSN it returns the current
// version. The ID is that of an assembly if assemblies is true, and otherwise that of a memory.
func named(ctx context.Context, st *varve.Store, assemblies bool, arg string) (varve.Version, error) {
	vs := versionsOf(st, assemblies)
	v, ok, err := versionOf(ctx, vs, arg)
	if ok || err != nil {
		return v, err
	}
	var newest uint64
	if assemblies {
		var g varve.Assembly
		g, err = st.Assemblies().Get(ctx, arg)
		newest = g.Version
	} else {
		var m varve.Memory
		m, err = st.Get(ctx, arg)
		newest = m.Version
	}
	if err != nil {
		return v, err
	}
	return vs.GetAt(ctx, arg, newest)
}

// orEnding calls f with arg, which is ID or ID@LSN. If no memory (or, if assemblies is true, no assembly) has this ID,
// and the ID is the ending of exactly one id, orEnding calls f again with that whole id in place of ID.
func orEnding(ctx context.Context, a *cli.App, st *varve.Store, assemblies bool, arg string,
	f func(arg string) error) error {
	try := a.Memory
	if assemblies {
		try = a.Assembly
	}
	id, lsn, ok := splitVersion(arg)
	if !ok {
		return try(ctx, st, arg, f)
	}
	first := true
	return try(ctx, st, id, func(id string) error {
		if first {
			first = false
			return f(arg) // an id may contain an @
		}
		return f(id + "@" + strconv.FormatUint(lsn, 10))
	})
}
