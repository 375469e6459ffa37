// Package users tests that several users of one machine can use a store at once, each in processes
// of their own that are killed, without locking each other out. It has only tests; they need root,
// which starts the processes as other users.
package users
