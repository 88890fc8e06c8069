"""Files of workflows that tests of the command line are about."""

from __future__ import annotations

ORDERS = """
domain: orders
workflows:
  - id: orders.approval
    version: 1
    steps:
      - {id: review, type: approval, title: Review, timeout: 2d, on_timeout: late}
      - {id: confirm, type: system, operation: orders.confirm, retry: {attempts: 1}}
      - {id: approved, type: terminal, outcome: approved}
      - {id: rejected, type: terminal, outcome: rejected}
      - {id: late, type: terminal, outcome: late}
    transitions:
      - {from: review, event: approved, to: confirm}
      - {from: review, event: rejected, to: rejected}
      - {from: confirm, event: completed, to: approved}
"""
"""Somebody looks at an order; then it is confirmed."""

REFUNDS = """
  - id: refunds
    version: 3
    steps:
      - {id: pay, type: system, operation: refunds.pay}
      - {id: paid, type: terminal}
    transitions:
      - {from: pay, event: completed, to: paid}
"""
"""Another one for the same file."""

RULES = '{"workflow_id": "limits", "version": "1.0.0", "name": "Limits", "steps": [{"id": "ok", "type": "action", "action": "allow"}]}'
