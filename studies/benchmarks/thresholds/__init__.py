"""What is a threshold worth, and where is it learned?"""
