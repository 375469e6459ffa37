//go:build !linux

package main

func callsEngine() []func() Engine { return nil }
