//go:build !varve

package main

func varveEngine() []func() Engine { return nil }
