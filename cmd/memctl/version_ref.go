package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/varve-db/varve"
)

// splitVersion takes ID@LSN apart.
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

// versionOf gets the version that ID@LSN names; false when the argument is an
// id. Ids may have an @ in them: a memory of just this id goes first.
func versionOf(ctx context.Context, st *varve.Store, arg string) (varve.Version, bool, error) {
	id, lsn, ok := splitVersion(arg)
	if !ok {
		return varve.Version{}, false, nil
	}
	switch _, err := st.GetRaw(ctx, arg); {
	case err == nil:
		return varve.Version{}, false, nil
	case !errors.Is(err, varve.ErrNotFound):
		return varve.Version{}, true, err
	}
	v, err := st.GetAt(ctx, id, lsn)
	if err == nil && v.Deleted {
		_, err = v.Decode()
	}
	return v, true, err
}

// named gets what ID or ID@LSN names.
func named(ctx context.Context, st *varve.Store, arg string) (varve.Version, error) {
	v, ok, err := versionOf(ctx, st, arg)
	if ok || err != nil {
		return v, err
	}
	m, err := st.Get(ctx, arg)
	if err != nil {
		return v, err
	}
	return st.GetAt(ctx, arg, m.Version)
}
