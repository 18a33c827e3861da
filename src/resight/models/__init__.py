"""What is saved and searched with: fitting, adding people, calibrating."""
