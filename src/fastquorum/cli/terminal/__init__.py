"""What every command does with its terminal: arguments, output, interrupts."""
