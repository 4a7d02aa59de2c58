"""Invoices, payments and reminders for a small shop."""
